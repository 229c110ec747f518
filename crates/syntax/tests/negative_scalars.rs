//! Tests of messages about accesses that leave their tensor only for negative scalars, and of
//! variables with two sizes.

use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, diagnose, parse};

fn messages(source: &str) -> String {
    let found = diagnose(&parse(source), &Bindings::default());
    found.iter().map(|found| found.render("f.tw", source, Style::default())).collect()
}

/// Sums over windows of `2*r + 1` elements, from a table of sums.
fn window_sums(requires: &str) -> String {
    format!(
        "def f(float(N) p, int r) -> (float(N) m) {requires} {{
  int n = 2*r + 1
  v = repeat(p)
  float(N + n) s
  s(0) = 0
  for i in 1:N + n {{
    s(i) = s(i - 1) + v(i - 1 - r)
  }}
  m(i) = s(i + n) - s(i)
}}"
    )
}

#[test]
fn a_scalar_that_fails_only_below_zero_needs_a_precondition() {
    let messages = messages(&window_sums(""));
    let first = messages.find("`requires r >= 0`").unwrap_or_else(|| panic!("{messages}"));
    assert!(messages.find("shorten the range").is_some_and(|other| first < other), "{messages}");
}

#[test]
fn a_subscript_with_an_offset_that_ends_the_range_gives_no_warning() {
    assert_eq!(messages(&window_sums("requires r >= 0")), "");
}

#[test]
fn a_scalar_that_also_fails_above_zero_needs_another_remedy() {
    let messages = messages("def f(float(N) x, int k) -> (y) {\n  y(i) = x(i + k) where i in 0:N\n}");
    assert!(messages.contains("reads outside") && !messages.contains("requires"), "{messages}");
}

#[test]
fn two_sizes_without_an_offset_still_give_a_warning() {
    let messages = messages("def f(float(N) a, float(M) b) -> (y) {\n  y(i) = a(i) + a(i + 1) + b(i)\n}");
    assert!(messages.contains("runs over two sizes"), "{messages}");
}
