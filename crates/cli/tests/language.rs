//! Constructs of the language at the command line: preconditions, triangles and storage orders.
//! Compiled code computes what the interpreter does.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::Folder;

const GROUPED: &str = "def grouped(float(C, H, W) x, float(K, D, R, S) w, int G) -> (y)
    requires C % G == 0, K % G == 0, D == C/G {
  y(g*(K/G) + k, h, v) +=! x(g*(C/G) + c, h + r, v + s) * w(g*(K/G) + k, c, r, s)
    where g in 0:G, k in 0:K/G, c in 0:C/G
}
def last(float(H) x, float(P) p) -> (y) requires P <= H { y(i) = x(H - P + i) * p(i) }
def outer(float(A) x, float(B) p) -> (y) { y = last(x, p) }
";

#[test]
fn programs_with_preconditions_are_compiled_and_proved() {
    let folder = Folder::new();
    folder.write("grouped.tw", GROUPED);
    let sizes = "--sizes C=6,G=3,K=9,D=2,H=9,W=21,R=2,S=3";
    folder.succeeds(&format!("run grouped.tw:grouped {sizes} --check"));
    assert!(folder.succeeds("prove grouped.tw:last --sizes H=100,P=70").contains("proved"));
}

#[test]
fn every_command_checks_preconditions() {
    let folder = Folder::new();
    folder.write("grouped.tw", GROUPED);
    for command in ["check", "run", "bench", "tune", "prove", "show --stage loops"] {
        for (name, sizes) in [("last", "H=3,P=5"), ("outer", "A=3,B=5")] {
            let name = if command == "check" { String::new() } else { format!(":{name}") };
            let sizes = if command == "check" { "H=3,P=5" } else { sizes };
            let words: Vec<&str> = command.split(' ').collect();
            let line = format!("{} grouped.tw{name} {} --sizes {sizes}", words[0], words[1..].join(" "));
            folder.fails(&line, 1, &["the sizes violate the precondition", "grouped.tw:6:"]);
        }
    }
    // A size of 0 must satisfy them too.
    folder.write("positive.tw", "def f(float(N) x) -> (y) requires N >= 1 { y(i) = x(i) }");
    folder.fails("run positive.tw --sizes N=0", 1, &["`N` must be at least 1"]);
}

const TRIANGLES: &str = "def rows(float(N, N) x) -> (s, most) {
  s(i) +=! x(i, j) where j in 0:i + 1
  most(i) max=! x(i, j) where j in i:N
}
def lower(float(N, N) x) -> (L) {
  L(i, j) = 0 where i in 0:N, j in 0:N
  L(i, j) = 2 * x(i, j) where j in 0:i + 1
}
def solve(float(N, N) A, float(N) b) -> (float(N) y) {
  for t in 0:N {
    r = b(t)
    r += -A(t, j) * y(j) / N where j in 0:t
    y(t) = r / (2 + A(t, t))
  }
}
";

#[test]
fn triangles_compute_what_the_interpreter_does() {
    let folder = Folder::new();
    folder.write("t.tw", TRIANGLES);
    for name in ["rows", "lower", "solve"] {
        for size in [1, 2, 37, 100] {
            folder.succeeds(&format!("run t.tw:{name} --sizes N={size} --check"));
        }
    }
    for name in ["rows", "lower"] {
        assert!(folder.succeeds(&format!("prove t.tw:{name} --sizes N=37")).contains("proved"));
    }
}

#[test]
fn an_interleaved_image_is_read_by_channel() {
    let folder = Folder::new();
    folder.write(
        "image.tw",
        "def swap(float(3, H, W) img(c, y, x) stored (y, x, c)) -> (out(c, y, x) stored (x, y, c), sums) {
            out(c, y, x) = img(2 - c, y, x)
            sums(c) +=! img(c, y, x)
        }",
    );
    // One row of two pixels.
    folder.floats("img.npy", &[1, 2, 3], &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
    for options in ["", "--check", "--target interp"] {
        let out = folder.succeeds(&format!("run image.tw --in img=img.npy {options}"));
        assert!(out.contains("out: float32(2, 1, 3)"), "{out}");
        assert!(out.contains("[3.000000, 2.000000, 1.000000, 30.000000, 20.000000, 10.000000]"), "{out}");
        assert!(out.contains("[11.000000, 22.000000, 33.000000]"), "{out}");
    }
    folder.floats("planar.npy", &[3, 1, 2], &[0.0; 6]);
    folder.fails("run image.tw --in img=planar.npy", 1, &["this dimension of `img` is 3"]);
}

const LISTS: &str = "def total(float(H[n]) g[n], static int n = 2) -> (y) {
  s[0](i) = g[0](i)
  for k in 1:n { s[k](i) = s[k - 1](i) + g[k](i % H[k]) }
  y(i) = s[n - 1](i)
}
";

#[test]
fn each_tensor_of_a_list_is_an_input() {
    let folder = Folder::new();
    folder.write("total.tw", LISTS);
    let random = "--in g[0]=uniform(1,1) --in g_1=uniform(2,2)";
    let ran = folder.succeeds(&format!("run total.tw --sizes H[0]=3,H_1=2 {random} --target interp"));
    assert!(ran.contains("[3.000000, 3.000000, 3.000000]"), "{ran}");
    let third = format!("run total.tw --sizes n=3,H_0=3,H_1=2,H_2=1 {random} --in g[2]=uniform(4,4)");
    assert!(folder.succeeds(&third).contains("[7.000000, 7.000000, 7.000000]"));
    folder.fails("run total.tw --sizes H_0=3,H_1=2 --in g[2]=uniform(0,1)", 1, &["no input g_2", "g_0, g_1"]);
    folder.fails("run total.tw --sizes H_2=1", 1, &["H_2", "H_0, H_1"]);
}
