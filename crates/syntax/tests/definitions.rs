//! Tests of named integers: the name means its expression, or a size that scalars determine.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::last_program;
use tilewright_ir::{Number, Program, print};
use tilewright_syntax::{Bindings, Checked, Code, check, parse};

/// The text of the last function's program, or the codes of its messages.
fn checked(source: &str) -> Result<String, Vec<Code>> {
    last_program(source).map(|program| print::source(&program))
}

#[test]
fn a_name_means_its_expression() {
    for (signature, definitions, body) in [
        ("float(N) x", "int half_n = (N + 1) / 2", "y(i) = x(2*i) where i in 0:half_n"),
        ("float(N) x, int k", "int m = N + k; int64 n = m * 2", "y(i) = x(0) + n * m where i in 0:n - m"),
        ("float(N) x", "int m = x.0 / 4", "float(m + 1) y\n y(i) = x(i) where i in 0:m\n y(m) = m"),
        ("float(N) x", "int m = max(N, 4)", "y(i) = i < N ? x(i) : 0 where i in 0:m"),
    ] {
        let named = format!("def f({signature}) -> (y) {{ {definitions}\n {body} }}");
        let mut written = body.to_owned();
        for definition in definitions.split(';').rev() {
            let (name, value) = definition.split_once('=').unwrap();
            let name = name.split_whitespace().last().unwrap();
            // Only whole words are the name.
            let words = written.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_');
            let replaced = words.map(|word| {
                let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
                if bare == name {
                    format!("({}){}", value.trim(), &word[bare.len()..])
                } else {
                    word.to_owned()
                }
            });
            written = replaced.collect();
        }
        let written = format!("def f({signature}) -> (y) {{ {written} }}");
        let (own, wanted) = (checked(&named), checked(&written));
        assert!(own.is_ok() || own == Err(vec![Code::EmptyRange]), "{named}\n{own:?}");
        assert_eq!(own, wanted, "{named}\n{written}");
    }
}

#[test]
fn a_called_function_has_its_own_names() {
    let source = "def inner(float(N) x) -> (y) { int m = N / 2\n y(i) = x(i) where i in 0:m }
        def f(float(M) x) -> (y) { int m = 3\n t(i) = x(i) * m\n y = inner(t) }";
    let text = checked(source).unwrap();
    assert!(text.contains("in 0:M/2"), "{text}");
}

#[test]
fn names_that_are_refused() {
    for (definition, code) in [
        ("int m = 1 / a", Code::InvalidSize),
        ("int m = int(1 / 0.0)", Code::InvalidSize),
        ("int m = int(sqrt(-1.0))", Code::InvalidSize),
        ("int m = int(a * x(0))", Code::InvalidSize),
        ("int m = 1.5", Code::InvalidSize),
        ("int m = int(x(0))", Code::InvalidSize),
        ("float m = 1", Code::TypeMismatch),
        ("int8 m = 1", Code::TypeMismatch),
        ("int a = 1", Code::NameCollision),
        ("int x = 1", Code::NameCollision),
        ("int m = 1; int m = 2", Code::NameCollision),
        ("int m = int(a); int m = int(2 * a)", Code::NameCollision),
        ("int m = q", Code::UndefinedName),
        ("int m = int(n); int n = int(a)", Code::UndefinedName),
        ("t = 1; int m = 2", Code::Syntax),
    ] {
        let source = format!("def f(float(N) x, float a) -> (y) {{ {definition}\n y(i) = x(i) * a }}");
        let found = checked(&source).unwrap_err();
        assert_eq!(found[0], code, "{source}\n{found:?}");
    }
}

fn bindings(sizes: &[(&str, i64)], scalars: &[(&str, f64)]) -> Bindings {
    let mut all: Bindings = sizes.iter().copied().collect();
    scalars.iter().for_each(|(name, value)| all.set_scalar(*name, Number::Float(*value)));
    all
}

/// Checks the last function of a text.
fn check_last(source: &str, bindings: &Bindings) -> Checked {
    let parsed = parse(source);
    assert_eq!(parsed.diagnostics, [], "{source}");
    let name = parsed.ast.functions.last().map(|last| last.name.text.clone()).unwrap_or_default();
    check(&parsed.ast, &name, bindings)
}

fn program(source: &str, sizes: &[(&str, i64)], scalars: &[(&str, f64)]) -> Program {
    let checked = check_last(source, &bindings(sizes, scalars));
    checked.program.unwrap_or_else(|| panic!("{source}\n{:#?}", checked.diagnostics))
}

/// The first message about a program.
fn message(source: &str, sizes: &[(&str, i64)], scalars: &[(&str, f64)]) -> String {
    let checked = check_last(source, &bindings(sizes, scalars));
    assert!(checked.program.is_none(), "{source}");
    checked.diagnostics[0].message.clone()
}

/// The values of the symbols by name.
fn sizes(program: &Program) -> Vec<(&str, Option<i64>)> {
    program.symbols.iter().map(|symbol| (symbol.name.as_str(), symbol.value)).collect()
}

const GRID: &str = "def grid(float(N) x, float sigma) -> (y) { int bins = int(1 / sigma) + 3
    y(b) = x(0) where b in 0:bins }";

#[test]
fn scalars_determine_sizes() {
    assert_eq!(sizes(&program(GRID, &[], &[])), [("N", None), ("bins", None)]);
    assert_eq!(sizes(&program(GRID, &[("N", 4)], &[])), [("N", Some(4)), ("bins", None)]);
    let at = program(GRID, &[("N", 4)], &[("sigma", 0.1)]);
    assert_eq!(sizes(&at), [("N", Some(4)), ("bins", Some(13))]);
    assert_eq!(at.shape(at.find_tensor("y").unwrap()), Some(vec![13]));
    // The size may be given instead of the scalar, and must agree with it.
    assert_eq!(sizes(&program(GRID, &[("bins", 10)], &[]))[1], ("bins", Some(10)));
    assert_eq!(sizes(&program(GRID, &[("bins", 13)], &[("sigma", 0.1)]))[1], ("bins", Some(13)));
    let wrong = message(GRID, &[("bins", 10)], &[("sigma", 0.1)]);
    assert_eq!(wrong, "`bins` is 13 with sigma = 0.1, but 10 is given for it");
}

#[test]
fn values_that_are_no_sizes() {
    let found = |sigma: f64| message(GRID, &[], &[("sigma", sigma)]);
    assert_eq!(found(0.0), "`bins` has no value: it converts inf to an integer");
    assert_eq!(found(f64::NAN), "`bins` has no value: it converts NaN to an integer");
    assert_eq!(found(-0.1), "the named integer `bins` must be at least 0, and is -7");
    assert_eq!(found(1e-30), "`bins` has no value: 1000000000000000000000000000000 does not fit int32");
    // The sum does not fit, and would wrap.
    let largest = 1.0 / 2_147_483_520.0;
    let sum = GRID.replace("+ 3", "+ 2147483647");
    assert!(message(&sum, &[], &[("sigma", largest)]).contains("does not fit int32"));
    let wide = GRID.replace("int bins = int(", "int64 bins = int64(");
    assert_eq!(found(1e-45), "`bins` has no value: it converts inf to an integer");
    assert!(message(&wide, &[], &[("sigma", 1e-16)]).starts_with("`bins` has no value: a size is between"));
    assert_eq!(message(GRID, &[("bins", -1)], &[]), "the named integer `bins` must be at least 0, and is -1");
}

#[test]
fn notation_must_agree_with_a_given_value() {
    let source = "def f(float(N) x) -> (y) { int part = N / 2\n y(i) = x(i) where i in 0:part }";
    assert_eq!(sizes(&program(source, &[("N", 8), ("part", 4)], &[])), [("N", Some(8))]);
    assert_eq!(message(source, &[("N", 8), ("part", 5)], &[]), "`part` is 4, but 5 is given for it");
}

#[test]
fn sizes_of_scalars_stand_in_signatures() {
    let source = "def f(float(bins) w, float(N, bins + 1) x, float sigma) -> (float(bins) y)
        requires bins >= 2, bins <= N { int bins = int(ceil(3 * sigma))
        y(b) +=! w(b) * x(n, b + 1) * x(n, 0) }";
    let open = program(source, &[], &[]);
    assert_eq!(sizes(&open), [("N", None), ("bins", None)]);
    let at = program(source, &[("N", 9)], &[("sigma", 1.5)]);
    assert_eq!(at.shape(at.find_tensor("x").unwrap()), Some(vec![9, 6]));
    assert!(message(source, &[("N", 4)], &[("sigma", 1.5)]).contains("violate the precondition"));
    // Notation stands there too.
    let tiles =
        "def f(float(N) x, float(tiles) w) -> (y) { int tiles = (N + 3) / 4\n y(i) = x(i) * w(i / 4) }";
    let at = program(tiles, &[("N", 9)], &[]);
    assert_eq!(at.shape(at.find_tensor("w").unwrap()), Some(vec![3]));
}

#[test]
fn sizes_depend_on_sizes_before_them() {
    let source = "def f(float(N) x, float a, int k) -> (y) {
        int m = int(a * N); int64 n = int64(sqrt(float(m * k))) + m
        y(i) = x(0) + m where i in 0:n + 1 }";
    assert_eq!(sizes(&program(source, &[], &[])), [("N", None), ("m", None), ("n", None)]);
    let at = program(source, &[("N", 10), ("k", 9)], &[("a", 0.4)]);
    assert_eq!(sizes(&at), [("N", Some(10)), ("m", Some(4)), ("n", Some(10))]);
    // Without k, only m is known.
    let part = program(source, &[("N", 10)], &[("a", 0.4)]);
    assert_eq!(sizes(&part), [("N", Some(10)), ("m", Some(4)), ("n", None)]);
}

#[test]
fn a_size_that_divides_is_positive() {
    let source = "def f(float(N) x, float a) -> (y) { int m = int(a)\n y(i) = x(i / m) where i in 0:N }";
    assert_eq!(program(source, &[], &[]).symbols[1].least, Some(1));
    assert!(message(source, &[("N", 3)], &[("a", 0.5)]).contains("must be at least 1, and is 0"));
}

#[test]
fn called_functions_have_sizes_of_their_own() {
    let inner = "def inner(float(N) x, float s) -> (y) { int bins = int(N * s)\n y(b) = x(b) where b in 0:min(bins, N) }";
    let source = format!(
        "{inner} def f(float(M) x, float s) -> (y, z) {{
        t = inner(x, s)\n u = inner(x, s)\n y = inner(t, s)\n z = inner(x, 2 * s) v(i) = u(i) + t(i) }}"
    );
    let open = program(&source, &[], &[]);
    // Two calls with the same arguments share a size.
    let names: Vec<&str> = open.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    assert_eq!(names, ["M", "bins", "bins_2", "bins_3"]);
    let at = program(&source, &[("M", 16)], &[("s", 0.5)]);
    assert_eq!(sizes(&at)[1..], [("bins", Some(8)), ("bins_2", Some(4)), ("bins_3", Some(16))]);
    // A number as the argument makes the size a number.
    let fixed = format!("{inner} def f(float(20) x) -> (y) {{ y = inner(x, 0.25) }}");
    assert_eq!(sizes(&program(&fixed, &[], &[])), [("bins", Some(5))]);
}

#[test]
fn arguments_that_depend_on_data_or_loops_are_refused() {
    let inner = "def inner(float(N) x, float s) -> (y) { int m = int(s)\n y(i) = x(0) where i in 0:m }";
    let data = format!("{inner} def f(float(M) x) -> (y) {{ y = inner(x, x(0)) }}");
    assert_eq!(message(&data, &[], &[]), "a named integer may depend on sizes and scalars only");
    let of_loop = format!(
        "{inner} def f(float(M) x) -> (y) {{ y() = 0\n for t in 0:4 {{ z = inner(x, t)\n y() += z(0) }} }}"
    );
    assert_eq!(message(&of_loop, &[], &[]), "a named integer may depend on sizes and scalars only");
}

#[test]
fn loops_over_stages_and_generic_functions_share_sizes() {
    let source = "def taps<T>(T(.., N) x, float sigma) -> (y) { int radius = int(ceil(2 * sigma))
        f = repeat(x)\n y(.., i) +=! f(.., i + d) where i in 0:N, d in -radius:radius + 1 }
        def f(float(H, N) x, uint8(N) g, float sigma) -> (y, z) {
          t[0](i, j) = x(i, j)
          for k in 0:3 { t[k + 1] = taps(t[k], sigma) }
          y(i, j) = t[3](i, j)\n z = taps(g, sigma) }";
    let open = program(source, &[], &[]);
    assert_eq!(sizes(&open), [("H", None), ("N", None), ("radius", None)]);
    assert_eq!(sizes(&program(source, &[], &[("sigma", 1.2)]))[2], ("radius", Some(3)));
}

#[test]
fn a_size_that_depends_on_itself_is_refused() {
    let source =
        "def f(float(N) x, float(m) w, float a) -> (y) { int m = int(a * w.0)\n y(i) = w(i) + x(0) }";
    assert_eq!(message(source, &[], &[]), "`m` depends on an extent that depends on `m`");
}

#[test]
fn programs_with_such_sizes_come_back_from_text() {
    for source in [
        GRID,
        "def f(float(N) x, float(m) w, float a, int8 k, double d) -> (y) {
           int m = a > 0.5 ? int(ceil(N * a)) + k : max(int(floor(d / 3)), N / 2); int64 n = int64(m) + int64(sqrt(d))
           y(i, j) = w(i) * x(0) where j in 0:n }",
        "def inner(float(N) x, half s) -> (y) { int n = int(N * s + 0.1)\n y(b) = x(b) where b in 0:min(n, N) }
         def f(float(M) n, half s) -> (y) { t = inner(n, s)\n y = inner(t, s) }",
    ] {
        let own = program(source, &[], &[]);
        let text = print::source(&own);
        let again = program(&text, &[], &[]);
        assert_eq!(again.symbols, own.symbols, "{text}");
        assert_eq!(again.derived, own.derived, "{text}");
        assert_eq!(print::program(&again), print::program(&own), "{text}");
        let serialised = serde_json::to_string(&own).unwrap();
        assert!(serde_json::from_str::<Program>(&serialised).unwrap() == own);
    }
}
