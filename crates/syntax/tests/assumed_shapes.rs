//! Tests of tensors whose shape is needed before all of their statements have ranges.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_ir::print;
use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, check, parse};

/// The program and the messages of a function.
fn checked(source: &str) -> (Option<String>, String) {
    let parsed = parse(source);
    assert_eq!(parsed.diagnostics, []);
    let checked = check(&parsed.ast, "f", &Bindings::default());
    let messages: Vec<String> =
        checked.diagnostics.iter().map(|found| found.render("f.tw", source, Style::default())).collect();
    (checked.program.map(|program| print::program(&program)), messages.join("\n"))
}

#[test]
fn a_view_of_a_tensor_that_is_written_again_has_the_shape_of_its_first_statements() {
    let source = "def f(float(N) x) -> (e) {
  e(i) = x(i)
  f = repeat(e)
  t(i) = (f(i - 1) + f(i + 1)) / 2
  e(i) = e(i) + t(i)
}";
    let (program, messages) = checked(source);
    assert_eq!(messages, "");
    let program = program.unwrap();
    assert!(program.contains("e : float32(N)") && program.contains("t : float32(N)"), "{program}");
}

#[test]
fn in_a_loop_too() {
    let source = "def f(float(H, W) image) -> (e) {
  e(y, x) = image(y, x)
  f = constant(e, 0)
  for n in 0:10 {
    t(y, x) = f(y - 1, x) + f(y + 1, x) + f(y, x - 1) + f(y, x + 1)
    e(y, x) = e(y, x) + t(y, x) / 8
  }
}";
    let (program, messages) = checked(source);
    assert_eq!(messages, "");
    let program = program.unwrap();
    assert!(program.contains("t : float32(H, W)"), "{program}");
}

#[test]
fn a_shape_that_grows_by_its_own_view_must_be_declared() {
    let source = "def f(float(N) x) -> (e) {
  e(i) = x(i)
  f = repeat(e)
  t(i) = (f(i - 1) + f(i + 1)) / 2
  e(i + 1) = t(i)
}";
    let (program, messages) = checked(source);
    assert!(program.is_none());
    assert!(messages.contains("the shape of `e` depends on itself"), "{messages}");
    assert!(messages.contains("declare it: `-> (float32(N + 1) e)`"), "{messages}");
}
