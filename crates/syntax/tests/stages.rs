//! Tests of lists of tensors and of loops over stages.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_ir::print;
use tilewright_syntax::{Bindings, Code, check, parse};

/// The text of the last function's program, or the codes of its messages.
fn checked(source: &str) -> Result<String, Vec<Code>> {
    let parsed = parse(source);
    let name = parsed.ast.functions.last().map(|last| last.name.text.clone()).unwrap_or_default();
    let checked = check(&parsed.ast, &name, &Bindings::default());
    let all = parsed.diagnostics.iter().chain(&checked.diagnostics);
    let codes: Vec<Code> = all.map(|found| found.code).collect();
    if codes.is_empty() { Ok(print::program(&checked.program.unwrap())) } else { Err(codes) }
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
