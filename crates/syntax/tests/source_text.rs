//! A program comes back from its text: from source text by the checker, and from serialised form.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its files has failed")]

use std::fs;

use serde::Deserialize;
use tilewright_ir::{Program, print};
use tilewright_syntax::{Bindings, check, parse};

/// The program of a function at these sizes, where the checker accepts it.
fn program(source: &str, function: &str, sizes: &Bindings) -> Result<Program, String> {
    let parsed = parse(source);
    assert_eq!(parsed.diagnostics, [], "{source}");
    let checked = check(&parsed.ast, function, sizes);
    checked.program.ok_or_else(|| format!("{:#?}", checked.diagnostics))
}

/// The program without its own names of tensors and variables, which printing may change.
fn without_names(mut program: Program) -> Program {
    program.vars.iter_mut().for_each(|var| var.name.clear());
    program.tensors.iter_mut().for_each(|tensor| tensor.name = tensor.name.replace('.', "_"));
    program.general = program.general.map(|general| without_names((*general).clone()).into());
    program
}

/// Checks that the program comes back from its serialised form, whatever its depth.
fn is_read_again(program: &Program) {
    let text = serde_json::to_string(program).unwrap();
    let mut reader = serde_json::Deserializer::from_str(&text);
    reader.disable_recursion_limit();
    let again = Program::deserialize(&mut reader).unwrap();
    assert!(again == *program, "{}", print::source(program));
}

fn comes_back(source: &str, sizes: &[(&str, i64)]) {
    let sizes: Bindings = sizes.iter().copied().collect();
    for function in &parse(source).ast.functions {
        let name = &function.name.text;
        // Sizes of a file need not suit all its functions.
        let Ok(own) = program(source, name, &sizes) else { continue };
        is_read_again(&own);
        let text = print::source(&own);
        let again = program(&text, name, &sizes).unwrap_or_else(|why| panic!("{source}\n{text}\n{why}"));
        let (own, again) = (without_names(own), without_names(again));
        assert_eq!(print::program(&again), print::program(&own), "{text}");
        assert_eq!(again.symbols, own.symbols, "{text}");
        assert_eq!(again.scalars, own.scalars, "{text}");
        assert_eq!(again.tensors, own.tensors, "{text}");
        // Piece by piece, so that a failure shows only the piece that differs.
        again.vars.iter().zip(&own.vars).for_each(|(left, right)| assert_eq!(left, right, "{text}"));
        for (left, right) in again.statements().iter().zip(own.statements()) {
            assert_eq!(left, &right, "{text}");
        }
        assert!(again == own, "{text}");
    }
}

#[test]
fn examples_come_back() {
    insta::glob!("../../../examples", "*/*.tw", |path| {
        let source = fs::read_to_string(path).unwrap();
        comes_back(&source, &[]);
        let all = ["M", "N", "K", "H", "W", "B", "C", "L", "D"].map(|name| (name, 40));
        comes_back(&source, &all);
    });
}

/// Programs that the reference of the language shows.
#[test]
fn documented_programs_come_back() {
    let text = fs::read_to_string("../../docs/language.md").unwrap();
    let programs = text.split("```tw\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut count = 0;
    for source in programs {
        comes_back(source, &[]);
        count += 1;
    }
    assert!(count > 50, "{count} programs");
}

fn body_comes_back(body: &str) {
    let signature = "def f(float(N) x, double(N) d, half(N) h, int8(N) b, uint64(N) u, int(M) index, int64(N) l, \
                     bool(N) p, int k, int8 s8, float alpha) -> (y)";
    let source = format!("{signature} {{\n{body}\n}}");
    let sizes: Bindings = [("N", 8), ("M", 8), ("k", 2)].into_iter().collect();
    program(&source, "f", &sizes).unwrap_or_else(|why| panic!("{source}: {why}"));
    comes_back(&source, &[("N", 8), ("M", 8), ("k", 2)]);
}

#[test]
fn every_type_and_literal_comes_back() {
    for body in [
        "y(i) = 1 / 3 where i in 0:N",
        "y(i) = x(i) * (1 / 3) + 0.1",
        "y(i) = d(i) * 0.1 + 1e300",
        "y(i) = h(i) * h(i) + 1",
        "y(i) = float16(x(i)) + h(i)",
        "y(i) = b(i) + float16(5)",
        "y(i) = max(min(b(i) + float16(5), 30), -30)",
        "y(i) = h(i) * (b(i) - bfloat16(1)) where i in 0:N",
        "y(i) = float32(-3) * x(i) - -0.5",
        "y(i) = b(i) + 100",
        "y(i) = int8(300) - b(i)",
        "y(i) = u(i) + 18446744073709551615",
        "y(i) = 5u + uint32(b(i)) * 7u",
        "y(i) = l(i) * 9l - 1",
        "y(i) = p(i) ? 1 : 2 where i in 0:N",
        "y(i) = !p(i) && x(i) > 0 || i > 3",
        "y(i) = int32(p(i)) + 1",
        "y(i) = isnan(x(i)) ? 0 : x(i)",
        "y(i) = sqrt(2) * pow(x(i), 3) + fma(x(i), 2, 1)",
        "y(i) = max(x(i), 0) + min(i, 3)",
        "y(i) = clamp(b(i), -5, 5)",
        "y(i) = x(i) * i + float(i * k)",
        "y(i) = int32(i) + 1 where i in 0:N",
        "y(i) = float(int32(i * 4294967296)) * x(i)",
        "y(i) = x(i) + alpha * k - s8",
        "y(i) = -x(i) - (x(i) - 1) / (2 * alpha)",
        "y(i) = i % 3 == 0 ? x(i) : -x(i)",
        "y(i) = i where i in 0:N",
        "y(i) = int64(i) * l(i)",
        "y(i) = x(i) > 1 ? 2.5 : x(i) < 0 ? 1 : 0",
    ] {
        body_comes_back(body);
    }
}

#[test]
fn every_subscript_comes_back() {
    for body in [
        "y(i) = x(index(i))",
        "y(i) = x(at) where at = index(i), at in 0:N",
        "y(i) = x(j) * x(j) where m = index(i), j = index(m), j in 0:5, m in 0:M, i in 0:M",
        "y(i) = x(int64(index(i) + index(i)) / 2 % N)",
        "y(i) = x(-b(i) + abs(b(i))) where i in 0:N",
        "y(i) = x(min(max(2 * index(i) - k, 0), N - 1))",
        "y(i) = x(p(i) ? 0 : 1) + x(b(i) < 3)",
        "y(i / 2, i % 2) = x(i) where i in 0:N",
        "y(i) = x(clamp(i / k * k + i % k, 0, N - 1)) where i in 0:N",
        "y(N) = 0\n y(i) = x(N - 1 - i)",
        "y(i) = x(i) where i in 0:k",
        "y(bin) +=! 1 where bin = index(i), bin in 0:256",
        "t max=! x(i)\n y(i) = x(i) - t",
        "y(i) = 0 where i in 0:N\n for t in 1:N { y(i) = i < t ? y(i) + x(t) : y(i) where i in 0:N }",
    ] {
        body_comes_back(body);
    }
}

#[test]
fn names_that_collide_come_back() {
    let source =
        "def inner(float(N) x) -> (y) { t(K) = x(K) * 2\n y(K) = t(K) + s() where K in 0:N\n s() +=! x(i) }
        def f(float(K) v, int t) -> (w) { y = inner(v)\n w = inner(y) }";
    let source =
        source.replace("y(K) = t(K) + s() where K in 0:N\n s() +=! x(i)", "s() +=! x(i)\n y(K) = t(K) + s()");
    comes_back(&source, &[]);
    comes_back(&source, &[("K", 5)]);
}

#[test]
fn deep_expressions_come_back() {
    let sum = vec!["x(i)"; 250].join(" + ");
    let gathers = format!("x({}i{})", "index(".repeat(60), ")".repeat(60));
    let loops = format!("{}y(i) += x(i){}", "for t in 0:2 { ".repeat(60), " }".repeat(60));
    let numbered: String = loops
        .split("for t")
        .enumerate()
        .map(|(at, part)| if at == 0 { part.to_owned() } else { format!("for t{at}{part}") })
        .collect();
    let check = move || {
        for body in [
            format!("y(i) = {sum}"),
            format!("y(i) = {gathers}"),
            format!("y(i) = 0 where i in 0:N\n{numbered}"),
        ] {
            comes_back(&format!("def f(float(N) x, int(N) index) -> (y) {{ {body} }}"), &[("N", 3)]);
        }
    };
    std::thread::Builder::new().stack_size(256 << 20).spawn(check).unwrap().join().unwrap();
}
