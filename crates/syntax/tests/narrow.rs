//! Tests of the warnings about narrow integers that wrap before they reach a wider type.

use tilewright_syntax::{Bindings, Diagnostic, diagnose, parse};

/// The warnings about a function with narrow inputs, one line each: the marked text, then the
/// suggestions.
fn warnings(body: &str) -> Vec<(String, String)> {
    let source = format!(
        "fn mean(x, y) = (x + y) / 2.0\nfn twice(float x) = 2 * x\n\
         def f(uint8(N, M) a, uint8(N, M) b, int16(N, M) c, int8(N, M) d, uint32(N, M) e, float(N, M) x)\n\
         -> (y) {{ {body} }}"
    );
    let text = |diagnostic: &Diagnostic| {
        assert!(!diagnostic.is_error(), "{body}\n{diagnostic:?}");
        (diagnostic.primary.0.text(&source).to_owned(), diagnostic.help.join("\n"))
    };
    diagnose(&parse(&source), &Bindings::default()).iter().map(text).collect()
}

/// A body, the marked text, and the text that the message suggests.
const WRAPPING: &[[&str; 3]] = &[
    ["int32(N, M) y\n y(i, j) = a(i, j) + b(i, j)", "a(i, j) + b(i, j)", "int32(a(i, j)) + b(i, j)"],
    ["float(N, M) y\n y(i, j) = a(i, j) + b(i, j)", "a(i, j) + b(i, j)", "int32(a(i, j)) + b(i, j)"],
    ["y(i, j) = (a(i, j) + b(i, j)) / 3.0", "(a(i, j) + b(i, j))", "(int32(a(i, j)) + b(i, j)"],
    ["y(i, j) = x(i, j) * (2 * a(i, j))", "(2 * a(i, j))", "2 * int32(a(i, j))"],
    ["y(i, j) = float(a(i, j) << 2)", "a(i, j) << 2", "int32(a(i, j)) << 2"],
    ["y(i, j) = float((a(i, j) + b(i, j)) / 2)", "(a(i, j) + b(i, j))", "int32(a(i, j)) + b(i, j)"],
    ["y(i, j) = int32(a(i, j) + b(i, j))", "a(i, j) + b(i, j)", "int32(a(i, j)) + b(i, j)"],
    [
        "y(i, j) = sqrt(a(i, j) * a(i, j) + b(i, j) * b(i, j))",
        "a(i, j) * a(i, j) + b(i, j) * b(i, j)",
        "int32(a(i, j)) * a(i, j) + int32(b(i, j)) * b(i, j)",
    ],
    [
        "y(i, j) = float(c(i, j) * c(i, j) * c(i, j))",
        "c(i, j) * c(i, j) * c(i, j)",
        "int64(c(i, j)) * c(i, j) * c(i, j)",
    ],
    ["y(i, j) = hypot(a(i, j), a(i, j) - b(i, j))", "a(i, j) - b(i, j)", "int32(a(i, j)) - b(i, j)"],
    ["y(i, j) = x(i, j) > 0 ? a(i, j) + b(i, j) : 0.5", "a(i, j) + b(i, j)", "int32(a(i, j)) + b(i, j)"],
    ["y(i, j) = a(i, j) + b(i, j) > 300.0 ? 1 : 0", "a(i, j) + b(i, j)", "int32(a(i, j)) + b(i, j)"],
    ["y(i, j) = mean(a(i, j), b(i, j))", "mean(a(i, j), b(i, j))", "mean(int32(a(i, j)), b(i, j))"],
    ["y(i, j) = twice(a(i, j) + b(i, j))", "a(i, j) + b(i, j)", "int32(a(i, j)) + b(i, j)"],
    ["y(i, j) = int32(a(i, j) << 8 | b(i, j))", "a(i, j) << 8", "int32(a(i, j)) << 8"],
    ["y(i, j) = -a(i, j) * x(i, j)", "-a(i, j)", "-int32(a(i, j))"],
    ["y +=! a(i, j)", "a(i, j)", "+=! int32(a(i, j))"],
    ["y(i) +=! d(i, j) * d(i, j)", "d(i, j) * d(i, j)", "+=! int32(d(i, j)) * d(i, j)"],
    ["y +=! (a(i, j) + b(i, j))", "(a(i, j) + b(i, j))", "+=! (int32(a(i, j)) + b(i, j))"],
    ["y +=! (a(i, j) | b(i, j))", "(a(i, j) | b(i, j))", "+=! int32(a(i, j) | b(i, j))"],
    ["y *=! a(i, j)", "a(i, j)", "*=! int32(a(i, j))"],
    ["y = 0\n y += a(i, j)", "a(i, j)", "+= int32(a(i, j))"],
    ["y(i, j) +=! a(i + k, j + l) where k in 0:3, l in 0:3", "a(i + k, j + l)", "+=! int32(a(i + k, j + l))"],
    ["y(i, j) = abs(a(i, j) - b(i, j))", "a(i, j) - b(i, j)", "absd(a(i, j), b(i, j))"],
    ["y(i, j) = abs(e(i, j) - 1) * x(i, j)", "e(i, j) - 1", "absd(e(i, j), 1)"],
];

#[test]
fn narrow_arithmetic_that_becomes_wide_is_reported_with_its_repair() {
    for [body, marked, repaired] in WRAPPING {
        let found = warnings(body);
        let [(text, help)] = found.as_slice() else { panic!("one warning for {body}: {found:?}") };
        assert_eq!(text, marked, "{body}");
        assert!(help.contains(repaired), "{body}: {help}");
    }
}

/// Bodies without any reason for a warning.
const SAFE: &[&str] = &[
    "y(i, j) = (int32(a(i, j)) + b(i, j)) / 3.0",
    "y(i, j) = 1.0 * a(i, j) + b(i, j)",
    "y(i, j) = float(uint8(a(i, j) + b(i, j)))",
    "y(i, j) = float((a(i, j) + b(i, j)) & 255)",
    "y(i, j) = float(255 - a(i, j))",
    "y(i, j) = float(a(i, j) / 2 + b(i, j) / 2)",
    "y(i, j) = float((a(i, j) & 15) * 16 + (b(i, j) >> 4))",
    "y(i, j) = float((a(i, j) & 15) << 4)",
    "y(i, j) = float(a(i, j) % 10 + 240)",
    "y(i, j) = x(i, j) * (a(i, j) > b(i, j) ? a(i, j) - b(i, j) : b(i, j) - a(i, j))",
    "y(i, j) = x(i, j) * (a(i, j) >= 16 ? a(i, j) - 16 : 0)",
    "y(i, j) = float(max(a(i, j), b(i, j)) - min(a(i, j), b(i, j)))",
    "y(i, j) = float(absd(a(i, j), b(i, j)))",
    "y(i, j) = float(avg_up(a(i, j), b(i, j))) + avg_down(a(i, j), b(i, j))",
    "y(i, j) = float(rounding_shift_right(a(i, j), 2))",
    "y(i, j) = lerp(a(i, j), b(i, j), 0.5)",
    "y(i, j) = abs(255 - a(i, j))",
    "y(i, j) = abs(c(i, j) - c(i, j))",
    "y(i, j) = a(i, j) + b(i, j) > 10 ? 1.0 : 0.0",
    "y(i, j) = a(i, j) + b(i, j)",
    "y(i, j) = x(i, j) * (a(i, j) + d(i, j))",
    "uint8() y\n y +=! a(i, j)",
    "y +=! int32(a(i, j))",
    "y +=! uint8(a(i, j) * b(i, j))",
    "y = uint8(0)\n y += a(i, j)",
    "y +=! a(i, j) > 3",
    "y max=! a(i, j)",
    "y(i, j) = a(i, j)\n y(i, j) += b(i, j)",
    "y(i, j) +=! a(i, j) & (k < 2 ? 15 : 7) where k in 0:4",
    "uint8(511) t\n t(i) = 0\n y(i, j) = t(a(i, j) + b(i, j)) * 1.0",
];

#[test]
fn arithmetic_that_does_not_wrap_by_mistake_is_not_reported() {
    for body in SAFE {
        assert_eq!(warnings(body), [], "{body}");
    }
}
