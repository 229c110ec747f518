//! Tests of lists of tensors and of loops over stages.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::last_program;
use tilewright_ir::print;
use tilewright_syntax::sizes::size_names;
use tilewright_syntax::{Bindings, Code, check, parse, signature};

/// The text of the last function's program, or the codes of its messages.
fn checked(source: &str) -> Result<String, Vec<Code>> {
    last_program(source).map(|program| print::program(&program))
}

#[test]
fn two_loops_may_use_the_same_names_in_their_iterations() {
    let program = |second: &str| {
        checked(&format!(
            "def f(float(N) x, float(M) z) -> (y) {{
               a[0](i) = x(i)
               for k in 0:2 {{ v = repeat(a[k])\n a[k + 1](i) = v(i - 1) + v(i) }}
               b[0](i) = z(i)
               for k in 0:2 {{ {second} = repeat(b[k])\n b[k + 1](i) = {second}(i + 1) + {second}(i) }}
               y(i) = a[2](i) + b[2](i) where i in 0:min(N, M)
             }}"
        ))
    };
    assert_eq!(program("v"), program("w"));
    assert!(program("v").is_ok(), "{:?}", program("v"));
    let tensors = "def f(float(N) x, int(M) z) -> (y, s) {
        a[0](i) = x(i)
        for k in 0:2 { t(i) = a[k](i)\n a[k + 1](i) = t(i) }
        b[0](i) = z(i)
        for k in 0:2 { for j in 0:2 { t(i, c) = b[k](i) + c where c in 0:3\n c[k + j](i) = t(i, 2) }
                       b[k + 1](i) = c[k + 1](i) + c[k](i) }
        y(i) = a[2](i); s(i) = b[2](i)
      }";
    let text = checked(tensors).unwrap();
    assert!(text.contains("t_0 : float32(N)") && text.contains("t_0_0 : int32(M, 3)"), "{text}");
}

/// A function that returns a list of three tensors, and the body of a caller.
fn with_list(results: &str, body: &str) -> Result<String, Vec<Code>> {
    checked(&format!(
        "def three(float(N) x) -> (g[3]) {{ g[0](i) = x(i)\n g[1](i) = 2 * x(i)\n g[2](i) = 3 * x(i) }}
         def f(float(N) x) -> ({results}) {{ {body} }}"
    ))
}

#[test]
fn every_tensor_of_a_returned_list_has_a_place() {
    assert!(with_list("y[3]", "y = three(x)").is_ok());
    assert!(with_list("y[4]", "y = three(x)\n y[3](i) = x(i)").is_ok());
    assert_eq!(with_list("y[2]", "y = three(x)"), Err(vec![Code::RankMismatch]));
    assert_eq!(with_list("y[2]", "y[0] = three(x)\n y[1](i) = x(i)"), Err(vec![Code::RankMismatch]));
}

#[test]
fn a_call_in_a_loop_over_stages_returns_a_list_of_the_iteration() {
    let body = "a[0](i) = x(i)
        for k in 0:2 { p = three(a[k])\n a[k + 1](i) = p[0](i) + p[2](i) }
        for k in 2:3 { p = three(a[k])\n a[k + 1](i) = p[k - 1](i) }
        y(i) = a[3](i)";
    let written = "a[0](i) = x(i)
        p = three(a[0])\n a[1](i) = p[0](i) + p[2](i)\n q = three(a[1])\n a[2](i) = q[0](i) + q[2](i)
        r = three(a[2])\n a[3](i) = r[1](i)
        y(i) = a[3](i)";
    let text = with_list("y", body).unwrap();
    let renamed = text.replace("p_0_", "p_").replace("p_1_", "q_").replace("p_2_", "r_");
    assert_eq!(renamed, with_list("y", written).unwrap());
}

/// Functions that take lists.
const TAKES_LISTS: &str = "
    def total<T>(T(.., H[n]) g[n], static int n) -> (y) {
      s[0](.., i) = g[0](.., i)
      for k in 1:n { s[k](.., i) = s[k - 1](.., i) + g[k](.., i % H[k]) }
      y(.., i) = s[n - 1](.., i)
    }
    def doubled(float(H[n]) g[n], static int n = 7) -> (float(H[n]) h[n]) {
      for k in 0:n { h[k](i) = 2 * g[k](i) }
    }
    def halves(float(N) x, static int n) -> (g[n]) {
      g[0](i) = x(i)
      for k in 1:n { g[k](i) = g[k - 1](2*i) where i in 0:(g[k - 1].0 + 1) / 2 }
    }";

#[test]
fn a_list_is_passed_by_its_name() {
    let caller = |body: &str| checked(&format!("{TAKES_LISTS} def f(float(N) x) -> (y) {{ {body} }}"));
    let own = caller("g = halves(x, 3)\n h = doubled(g)\n y = total(h)").unwrap();
    let written = caller(
        "g = halves(x, 3)
         h[0](i) = 2 * g[0](i)\n h[1](i) = 2 * g[1](i)\n h[2](i) = 2 * g[2](i)
         y = total(h, 3)",
    )
    .unwrap();
    assert_eq!(own, written);
    // Lists of an iteration, and lists of views.
    let in_loop = "a[0](i) = x(i)
        for k in 0:2 { g = halves(a[k], 2)\n a[k + 1] = total(g) }
        v[0] = repeat(x)\n v[1] = repeat(a[1])
        t = total(v)\n y(i) = t(i) + a[2](i)";
    assert!(caller(in_loop).is_ok(), "{:?}", caller(in_loop));
    for body in ["y = total(x)", "g = halves(x, 3)\n y = total(g, 2)", "g[1](i) = x(i)\n y = total(g)"] {
        assert!(caller(body).is_err(), "{body}");
    }
}

#[test]
fn each_tensor_of_a_list_is_an_input() {
    let source = "def f(float(H[n], W) g[n], static int n = 2) -> (y)
          requires H[0] >= H[1] { y(i) = g[0](i, 0) + g[n - 1](i, W - 1) where i in 0:H[n - 1] }";
    let text = checked(source).unwrap();
    assert!(text.contains("g_0 : float32(H_0, W)") && text.contains("g_1 : float32(H_1, W)"), "{text}");
    let function = &parse(source).ast.functions[0];
    let names = |sizes: &[(&str, i64)]| {
        let signature = signature(function, &sizes.iter().copied().collect::<Bindings>());
        let names = signature.params.iter().map(|param| param.name.text.clone());
        (names.collect::<Vec<_>>().join(" "), size_names(&signature).join(" "))
    };
    assert_eq!(names(&[]), ("g_0 g_1 n".to_owned(), "H_0 H_1 W n".to_owned()));
    assert_eq!(names(&[("n", 3)]), ("g_0 g_1 g_2 n".to_owned(), "H_0 H_1 H_2 W n".to_owned()));
    // The values of sizes are given by the names of the program.
    let sizes: Bindings = [("H_0", 5), ("H_1", 6), ("W", 2)].into_iter().collect();
    let found = check(&parse(source).ast, "f", &sizes).diagnostics;
    assert_eq!(found[0].message, "the sizes violate the precondition `H_0 >= H_1`");
}

#[test]
fn a_function_on_numbers_selects_by_a_static_condition() {
    let program = |margin: &str, shift: &str| {
        checked(&format!(
            "fn margin(k) = k < 2 ? 1 - k : 4 - k
             def crop(float(W) f, int m) -> (inner) requires m >= 0 {{
               inner(x) = f(x + m) where x in 0:W - 2*m
             }}
             def f(float(W) a) -> (y) requires W >= 20 {{
               for k in 0:4 {{ d[k] = crop(a, {margin}) }}
               s = shift(a, {shift})
               y(x) = d[0](x) + d[1](x) + d[2](x) + d[3](x) + s(x + 1) where x in 0:W - 6
             }}"
        ))
    };
    let by_call = program("2**margin(k) - 1", "margin(0)");
    assert!(by_call.is_ok(), "{by_call:?}");
    assert_eq!(by_call, program("2**(k < 2 ? 1 - k : 4 - k) - 1", "1"));
    assert_eq!(program("margin(k)", "margin(3)"), program("(k < 2 ? 1 - k : 4 - k)", "1"));
}
