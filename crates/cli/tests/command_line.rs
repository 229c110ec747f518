//! Tests of the command line: exit statuses, streams, files and messages.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::process::{Command, Stdio};

use support::{CommandOutput, DOUBLE, Folder, REFUSED, float_bytes, header, npy, npy_with, npz};

#[test]
fn check_looks_at_every_file_and_fails_if_one_is_bad() {
    let folder = Folder::new();
    assert_eq!(
        folder.succeeds("check mm.tw several.tw"),
        "mm.tw: ok (mm)\nseveral.tw: ok (mm, double_all)\n"
    );
    folder.write("syntax.tw", "def f(float(N) x) -> (y) { y(i) = }\n");
    folder.write("empty.tw", "# nothing\n");
    let ended = folder.tilewright("check mm.tw bad.tw missing.tw syntax.tw empty.tw double.tw");
    assert_eq!(ended.status, 1);
    assert_eq!(ended.out, "mm.tw: ok (mm)\ndouble.tw: ok (double_all)\n");
    for part in [
        "error[out-of-bounds]: `x(i - 1)` reads outside of `x`\n --> bad.tw:2:17",
        "bad.tw: 1 error\n",
        "error: cannot read missing.tw: ",
        "error[syntax]",
        " --> syntax.tw:1:",
        "error: empty.tw has no functions",
    ] {
        assert!(ended.err.contains(part), "{part:?}\n{}", ended.err);
    }
    // A warning does not fail the check, and goes to standard error.
    let ended = folder.tilewright("check warned.tw");
    assert_eq!((ended.status, ended.out.as_str()), (0, "warned.tw: ok (sum), 1 warning\n"));
    assert!(ended.err.contains("warning[uninitialized-reduction]"), "{}", ended.err);
    // With sizes, the check covers only these sizes.
    folder.write("fourth.tw", "def fourth(float(M, N) x) -> (y) { y(i) = x(i, 3) }\n");
    folder.fails("check fourth.tw", 1, &["error[out-of-bounds]"]);
    assert_eq!(folder.succeeds("check fourth.tw --sizes N=4"), "fourth.tw: ok (fourth)\n");
    folder.fails("check mm.tw --sizes Q=3", 1, &["mm.tw has no size or integer scalar Q. It has: K, M, N."]);
}

#[test]
fn a_wrong_command_line_is_status_2() {
    let folder = Folder::new();
    let table: [(&str, &[&str]); 23] = [
        ("check", &["<FILE[:NAME]>"]),
        ("run", &["FILE"]),
        ("dance", &["dance"]),
        ("run mm.tw --nonsense", &["--nonsense"]),
        ("show mm.tw --stage nonsense", &["ranges", "program"]),
        ("show mm.tw", &["--stage"]),
        ("run mm.tw --sizes M", &["NAME=N"]),
        ("run mm.tw --sizes =3", &["NAME=N"]),
        ("run mm.tw --sizes M=x", &["`x` is not a 64-bit integer"]),
        ("run mm.tw --sizes M=2.5", &["`2.5` is not a 64-bit integer"]),
        ("run mm.tw --sizes M=9223372036854775808", &["`9223372036854775808` is not a 64-bit integer"]),
        ("run mm.tw --sizes M=2,M=3", &["--sizes gives M twice: 2 and 3"]),
        ("run mm.tw --seed -1", &["-1"]),
        ("run mm.tw --in M=3", &["M is a size: give --sizes M=3"]),
        ("run mm.tw --in A=3.5", &["A is a tensor and takes a file"]),
        (
            "run mm.tw --in A.npy",
            &["--in takes NAME=FILE, NAME=uniform(LOW,HIGH), NAME=NUMBER or a .npz file, not A.npy"],
        ),
        ("run mm.tw --in A=uniform(1)", &["uniform takes two numbers, as in A=uniform(0.1,1)"]),
        ("run mm.tw --sizes M=2,N=2,K=2 --in A=uniform(2,1)", &["--in A=uniform(2,1): 2 is more than 1"]),
        ("run mm.tw --sizes M=2,N=2,K=2 --in A=uniform(nan,1)", &["`nan` is not a finite number"]),
        (
            "run mm.tw --sizes M=2,N=2,K=2 --in A=uniform(0,1e39)",
            &["A is float32, and 1e39 is out of its range"],
        ),
        ("run mm.tw --in A=uniform(0,1) --in A=uniform(0,1)", &["--in gives A twice"]),
        ("tune mm.tw --sizes M=2,N=2,K=2 --in A=uniform(1,0)", &["1 is more than 0"]),
        ("run several.tw", &["several functions", "several.tw:mm", "mm, double_all"]),
    ];
    for (line, parts) in table {
        folder.fails(line, 2, parts);
    }
    folder.floats("x.npy", &[1], &[1.0]);
    folder.fails("run double.tw --in x=x.npy --in x=x.npy", 2, &["--in gives x twice"]);
    // Help and version succeed.
    assert!(folder.succeeds("--help").contains("check"));
    assert!(folder.succeeds("run --help").contains("--sizes"));
    assert!(folder.succeeds("--version").contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn random_inputs_have_a_range() {
    let folder = Folder::new();
    folder.write(
        "ends.tw",
        "def ends(float(N) x, uint8(N) k, float a) -> (low, high, least, most, b) {
           low min=! x(i)
           high max=! x(i)
           least min=! k(i)
           most max=! k(i)
           b = a
         }",
    );
    let line =
        "run ends.tw --sizes N=5000 --in x=uniform(0.25,0.5) --in k=uniform(3,200) --in a=uniform(7,8)";
    let out = folder.succeeds(line);
    let number = |name: &str| -> f64 {
        let row = out.lines().find(|row| row.starts_with(&format!("{name}: "))).unwrap();
        row.split(['[', ']']).nth(1).unwrap().parse().unwrap()
    };
    assert!((0.25..0.26).contains(&number("low")) && (0.49..=0.5).contains(&number("high")), "{out}");
    assert_eq!((number("least"), number("most")), (3.0, 200.0));
    assert!((7.0..=8.0).contains(&number("b")), "{out}");
    assert_eq!(folder.succeeds(line), out);
    assert_ne!(folder.succeeds(&format!("{line} --seed 1")), out);
    assert_eq!(folder.succeeds(&format!("{line} --check")), out);
    let wrong = "run ends.tw --sizes N=5 --in k=uniform(0,256)";
    folder.fails(wrong, 2, &["k is uint8, and 256 is out of its range"]);
    folder.fails(
        "run ends.tw --sizes N=5 --in low=uniform(0,1)",
        1,
        &["low is a result that `ends` computes"],
    );
}

#[test]
fn elements_that_rounding_decides_are_counted_and_not_compared() {
    let folder = Folder::new();
    // The difference is nearly 0, and rounding decides its sign. With integers as inputs, the
    // difference is 0 or far from 0.
    folder.write(
        "sign.tw",
        "def sign(float(N) x) -> (s) { s(i) = x(i) * x(i) - x(i) * x(i) < 0.1 * x(i) ? 1 : 2 }\n",
    );
    folder.write("nothing.tw", "def nothing(float(N) x) -> (s) { s(i) = 1 / (x(i) * 0.1 - x(i) * 0.1) }\n");
    let ended = folder.tilewright("run nothing.tw --sizes N=6 --check");
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(ended.err.contains("warning: no element of s was compared: with these inputs"), "{}", ended.err);
    assert!(ended.err.contains("--in 'NAME=uniform(0.1,1)'"), "{}", ended.err);
    folder.floats("x.npy", &[3], &[0.0, 0.3, 4.0]);
    let ended = folder.tilewright("run sign.tw --in x=x.npy --check");
    assert_eq!((ended.status, ended.err.contains("compared")), (0, false), "{}", ended.err);
    folder.write("near.tw", "def near(float(N) x) -> (s) { s(i) = x(i) * x(i) > 0.09 ? 1 : 2 }\n");
    let ended = folder.tilewright("run near.tw --in x=x.npy --check");
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(ended.err.contains("note: 1 of 3 elements of s were not compared"), "{}", ended.err);
}

#[test]
fn targets_that_are_absent_and_targets_that_do_not_exist() {
    let folder = Folder::new();
    // No machine has this many devices.
    for target in ["cuda:99", "opencl:99"] {
        let line = format!("run double.tw --sizes N=2 --target {target}");
        folder.fails(&line, 3, &["there is no "]);
        folder.fails(&line.replace("run", "bench"), 3, &["there is no "]);
        folder.fails(&line.replace("run", "tune"), 3, &["there is no "]);
    }
    for option in ["--threads 2", "--vectors baseline"] {
        let line = format!("run double.tw --sizes N=2 --target opencl {option}");
        folder.fails(&line, 2, &["is for --target cpu"]);
    }
    for target in ["nonsense", "interp:1", "cpu:0", "CPU", "cuda:x", "opencl:-1"] {
        let line = format!("run double.tw --sizes N=2 --target {target}");
        folder.fails(&line, 2, &[&format!("there is no target {target}"), "interp, cpu"]);
    }
    let interpreted = folder.succeeds("run double.tw --sizes N=2 --target interp");
    assert_eq!(folder.succeeds("run double.tw --sizes N=2 --target cpu"), interpreted);
    assert_eq!(folder.succeeds("run double.tw --sizes N=2"), interpreted);
    folder.fails("bench double.tw --sizes N=2 --target interp", 2, &["bench measures kernels"]);
    for option in ["--schedule double.tw", "--threads 2", "--vectors baseline", "--check"] {
        let line = format!("run double.tw --sizes N=2 --target interp {option}");
        folder.fails(&line, 2, &["is for compiled code", option.split(' ').next().unwrap()]);
    }
}

#[test]
fn functions_are_picked_by_name() {
    let folder = Folder::new();
    assert!(folder.succeeds("run several.tw:double_all --sizes N=2").starts_with("y: float32(2)  checksum "));
    assert!(
        folder.succeeds("run several.tw:mm --sizes M=1,N=2,K=3").starts_with("C: float32(1, 2)  checksum ")
    );
    assert!(folder.succeeds("run mm.tw:mm --sizes M=1,N=2,K=3").starts_with("C: float32(1, 2)  checksum "));
    folder.fails(
        "run several.tw:double_al --sizes N=2",
        1,
        &["several.tw has no function `double_al`. Did you mean double_all? It has: mm, double_all."],
    );
    folder.fails("show several.tw:zzz --stage ranges", 1, &["no function `zzz`. It has: mm, double_all."]);
    let check = "check several.tw:double_all mm.tw several.tw:mm";
    assert_eq!(folder.succeeds(check), "several.tw: ok (double_all)\nmm.tw: ok (mm)\nseveral.tw: ok (mm)\n");
    folder.fails(
        "check several.tw:double_al",
        1,
        &["several.tw has no function `double_al`. Did you mean double_all? It has: mm, double_all."],
    );
    // Only the picked function counts.
    folder.write("half.tw", [DOUBLE, REFUSED].concat());
    folder.fails("check half.tw", 1, &["error[out-of-bounds]", "half.tw: 1 error"]);
    folder.fails("check half.tw:bad", 1, &["error[out-of-bounds]", "half.tw: 1 error"]);
    assert_eq!(folder.succeeds("check half.tw:double_all --sizes N=3"), "half.tw: ok (double_all)\n");
    folder.fails("check several.tw:double_all --sizes M=3", 1, &["no size or integer scalar M. It has: N."]);
    // A file whose name contains a colon is still a file.
    folder.write("odd:name.tw", DOUBLE);
    assert_eq!(folder.succeeds("check odd:name.tw"), "odd:name.tw: ok (double_all)\n");
    assert!(folder.succeeds("run odd:name.tw --sizes N=2").starts_with("y: float32(2)"));
}

#[test]
fn source_files_that_cannot_be_read() {
    let folder = Folder::new();
    fs::create_dir(folder.path("dir.tw")).unwrap();
    folder.write("latin.tw", b"# fine\ndef f(float(N) x) -> (y) { y(i) = x(i) } # \xe9\n");
    folder.write("empty.tw", "");
    for command in ["check", "run", "show --stage ranges"] {
        folder.fails(&format!("{command} missing.tw"), 1, &["error: cannot read missing.tw: No such file"]);
        folder.fails(&format!("{command} dir.tw"), 1, &["error: cannot read dir.tw: Is a directory"]);
        folder.fails(&format!("{command} latin.tw"), 1, &["latin.tw:2: this is not text in UTF-8", "0xe9"]);
        folder.fails(&format!("{command} empty.tw"), 1, &["error: empty.tw has no functions"]);
    }
    folder.fails("run missing.tw:f", 1, &["cannot read missing.tw"]);
    folder.fails("run bad.tw --sizes N=4", 1, &["error[out-of-bounds]", " --> bad.tw:2:17", "at i = 0"]);
}

#[test]
fn show_prints_ranges_and_the_program() {
    let folder = Folder::new();
    let ranges = folder.succeeds("show mm.tw --stage ranges");
    assert_eq!(
        ranges,
        "mm
  input        float32(M, K) A
  input        float32(K, N) B
  output       float32(M, N) C

C(i, j) +=! A(i, k) * B(k, j)
    i in 0:M                 line 2: `A(i, k)` allows i up to M - 1
    j in 0:N                 line 2: `B(k, j)` allows j up to N - 1
    k in 0:K                 line 2: `A(i, k)` allows k up to K - 1; line 2: `B(k, j)` allows k up to K - 1
"
    );
    assert_eq!(
        folder.succeeds("show several.tw:mm --stage program --sizes M=2"),
        "program mm
  sizes       M = 2, K, N
  input       A : float32(2, K)
  input       B : float32(K, N)
  output      C : float32(2, N)

stage C
  C(i, j) +=! A(i, k) * B(k, j)
      over i in 0:2, j in 0:N
      reducing k in 0:K
"
    );
    folder.fails("show bad.tw --stage ranges", 1, &["error[out-of-bounds]"]);
    folder.fails("show mm.tw --stage ranges --sizes L=2", 1, &["no size or integer scalar L"]);
    folder.fails("show several.tw --stage program", 2, &["several functions"]);
}

/// A product and the sum that uses it are rounded once, unless contraction is turned off.
#[test]
fn contraction_can_be_turned_off() {
    let folder = Folder::new();
    folder.write("f.tw", "def f(float(N) x, float(N) z) -> (y) { y(i) = x(i) * x(i) - z(i) }\n");
    // A float32 cannot hold the last bit, 2^-24, of (1 + 2^-12)^2.
    let x = f32::exp2(-12.0) + 1.0;
    folder.floats("x.npy", &[1], &[x]);
    folder.floats("z.npy", &[1], &[x * x]);
    let run = "run f.tw --in x=x.npy --in z=z.npy";
    assert!(folder.succeeds(&format!("{run} --no-contract")).contains("[0.000000]"));
    folder.succeeds(&format!("{run} --no-contract --check"));
    let show =
        |options: &str| folder.succeeds(&format!("show mm.tw --stage llvm --sizes M=8,N=8,K=8{options}"));
    assert!(show("").contains("llvm.fmuladd"));
    assert!(!show(" --no-contract").contains("llvm.fmuladd"));
    folder.succeeds("bench f.tw --sizes N=8 --no-contract --samples 2");
}

#[test]
fn sizes_come_from_the_command_line_and_from_files() {
    let folder = Folder::new();
    folder.floats("a.npy", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    folder.floats("b.npy", &[3, 1], &[1.0, 0.0, -1.0]);
    let out = folder.succeeds("run mm.tw --in A=a.npy --in B=b.npy");
    assert!(out.starts_with("C: float32(2, 1)  checksum "), "{out}");
    assert!(out.ends_with("  [-2.000000, -2.000000]\n"), "{out}");
    // A given size must agree with the file.
    assert_eq!(folder.succeeds("run mm.tw --in A=a.npy --in B=b.npy --sizes K=3,M=2"), out);
    assert!(folder.succeeds("run mm.tw --in A=a.npy --sizes N=4").starts_with("C: float32(2, 4)  checksum "));
    folder.floats("b64.npy", &[64, 5], &[0.0; 320]);
    folder.floats("a32.npy", &[4, 32], &[0.0; 128]);
    folder.fails(
        "run mm.tw --in B=b64.npy --in A=a32.npy",
        1,
        &["error[size-mismatch]: K is 32 from A (a32.npy), but 64 from B (b64.npy)", "32 here", "64 here"],
    );
    folder.fails(
        "run mm.tw --in A=a32.npy --sizes K=5",
        1,
        &["error[size-mismatch]: K is 5 from --sizes, but 32 from A (a32.npy)"],
    );
    // The message names the missing sizes and the known ones.
    folder.fails("run mm.tw", 1, &["`mm` needs values for M, K, N: give --sizes M=…,K=…,N=…"]);
    folder.fails("run mm.tw --in A=a.npy", 1, &["`mm` needs a value for N", "K=3, M=2", "--sizes N=…"]);
    // For an unknown name, the message suggests a known one.
    folder.write("rows.tw", "def rows(float(HEIGHT, WIDTH) image) -> (sums) { sums(y) +=! image(y, x) }\n");
    folder.fails(
        "run rows.tw --sizes WIDHT=3",
        1,
        &["rows.tw has no size or integer scalar WIDHT. Did you mean WIDTH? It has: HEIGHT, WIDTH."],
    );
    folder.fails(
        "run rows.tw --in imge=a.npy",
        1,
        &["`rows` has no input imge. Did you mean image? It has: image"],
    );
    folder.fails("run mm.tw --in Q=a.npy", 1, &["`mm` has no input Q. It has: A, B"]);
    folder.fails(
        "run mm.tw --in C=a.npy --in A=a.npy --in B=b.npy",
        1,
        &["C is a result", "a.npy has no use"],
    );
}

#[test]
fn a_size_inside_an_extent_is_solved_for() {
    let folder = Folder::new();
    folder.write("pairs.tw", "def pairs(float(2*N) x) -> (float(N) y) { y(i) = x(2*i) + x(2*i + 1) }\n");
    folder.floats("even.npy", &[4], &[1.0, 2.0, 3.0, 4.0]);
    folder.floats("odd.npy", &[3], &[1.0, 2.0, 3.0]);
    let sums = folder.succeeds("run pairs.tw --in x=even.npy");
    assert!(sums.starts_with("y: float32(2)") && sums.ends_with("[3.000000, 7.000000]\n"), "{sums}");
    folder.fails("run pairs.tw --in x=odd.npy", 1, &["needs a value for N"]);
    folder.fails(
        "run pairs.tw --in x=odd.npy --sizes N=2",
        1,
        &["x has the shape (4,), but odd.npy has (3,)"],
    );
}

#[test]
fn sizes_that_cannot_be() {
    let folder = Folder::new();
    for value in ["0", "-1", "-9223372036854775808"] {
        for command in ["run", "check", "show --stage program"] {
            // `run` gives an empty result at a size of 0.
            if (command, value) == ("run", "0") {
                continue;
            }
            let line = format!("{command} double.tw --sizes N={value}");
            folder.fails(
                &line,
                1,
                &["error[invalid-size]", &format!("`N` must be at least 1, and is {value}")],
            );
        }
    }
    folder.floats("none.npy", &[0], &[]);
    folder.fails("bench double.tw --in x=none.npy", 1, &["error[invalid-size]", "is 0"]);
    folder.fails(
        "run strided.tw --sizes N=3,s=0",
        1,
        &["error[invalid-size]", "`s` must be at least 1, and is 0"],
    );
    folder.write("three.tw", "def three(float(N) x) -> (y) { y(i) = x(i) + x(i + 2) }\n");
    folder.fails("run three.tw --sizes N=2", 1, &["error[empty-range]"]);
    // The run is refused before it allocates memory.
    folder.fails("run double.tw --sizes N=9223372036854775807", 1, &["`x`", "larger than any memory"]);
    folder.fails(
        "run double.tw --sizes N=1000000000000000",
        1,
        &["running `double_all` takes 10.7 PiB", "free"],
    );
    folder.fails("run mm.tw --sizes M=4000000000,K=4000000000,N=1", 1, &["larger than any memory"]);
    folder.fails("run mm.tw --sizes M=1000000,K=1000000,N=1", 1, &["running `mm` takes 7.3 TiB"]);
    folder.write("wide.tw", "def wide(float(N) x) -> (y) { y(i, j) = x(i) * x(j) }\n");
    folder.fails("run wide.tw --sizes N=10000000", 1, &["running `wide` takes"]);
}

#[test]
fn scalars_by_in_and_by_sizes() {
    let folder = Folder::new();
    folder.floats("x.npy", &[5], &[0.0, 1.0, 2.0, 3.0, 4.0]);
    folder.ints("two.npy", &[], &[2]);
    folder.floats("half.npy", &[], &[0.5]);
    let stride = folder.succeeds("run strided.tw --in x=x.npy --in s=2");
    assert!(stride.ends_with("[0.000000, 2.000000, 4.000000]\n"), "{stride}");
    assert_eq!(folder.succeeds("run strided.tw --in x=x.npy --sizes s=2"), stride);
    assert_eq!(folder.succeeds("run strided.tw --in x=x.npy --in s=two.npy"), stride);
    assert_eq!(folder.succeeds("run strided.tw --in x=x.npy --in s=2 --sizes s=2"), stride);
    folder.fails(
        "run strided.tw --in x=x.npy --sizes s=2 --in s=3",
        1,
        &["s is 2 from --sizes, but 3 from --in"],
    );
    folder.fails("run strided.tw --in x=x.npy --in s=2.5", 1, &["s is int32, but `2.5` is no int32"]);
    folder.fails("run strided.tw --in x=x.npy --in s=3000000000", 1, &["s is int32", "3000000000"]);
    folder.fails("run strided.tw --in x=x.npy --sizes s=3000000000", 1, &["s is int32", "3000000000"]);
    folder.fails(
        "run strided.tw --in x=x.npy --in s=half.npy",
        1,
        &["s is int32, and half.npy holds float32"],
    );
    folder.fails("run strided.tw --in x=x.npy --in s=x.npy", 1, &["s is a scalar, and x.npy has 5 elements"]);
    folder.fails("run strided.tw --in x=x.npy", 1, &["`strided` needs a value for s (known: N=5)"]);
    folder.write(
        "scalars.tw",
        "def f(float(N) x, float a, double d, bool on, uint8 k) -> (y) {
           y(i) = on ? a * x(i) + float(d) + k : 0 }\n",
    );
    let line = "run scalars.tw --in x=x.npy --in a=-2e0 --in d=0.25 --in k=200";
    let on = folder.succeeds(&format!("{line} --in on=true"));
    assert!(on.ends_with("[200.250000, 198.250000, 196.250000, 194.250000, 192.250000]\n"), "{on}");
    assert!(folder.succeeds(&format!("{line} --in on=false")).contains("  [0.000000, 0.000000, "));
    assert_eq!(folder.succeeds(&format!("{line} --in on=1")), on);
    folder.fails(&format!("{line} --in on=maybe"), 1, &["on is bool, but `maybe` is no bool"]);
    folder.fails(
        "run scalars.tw --in x=x.npy --in a=x --in k=1",
        1,
        &["a is float32, but `x` is no float32"],
    );
    folder.fails("run scalars.tw --in x=x.npy --in k=256", 1, &["k is uint8, and 256 is out of its range"]);
    folder.fails("run scalars.tw --in x=x.npy --in k=-1", 1, &["k is uint8, and -1 is out of its range"]);
    folder.fails("run scalars.tw --in x=x.npy --in q=q.npy", 1, &["q.npy"]);
}

#[test]
fn the_version_is_that_of_the_command() {
    let wanted = format!("tilewright {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(Folder::new().succeeds("--version"), wanted);
}

#[test]
fn a_scalar_that_is_given_twice_names_where_from() {
    let folder = Folder::new();
    let ended = folder.tilewright("run strided.tw --sizes N=5 --in s=2 --in s=3");
    assert_eq!(ended.status, 2);
    assert!(!ended.err.contains("--sizes"), "{}", ended.err);
}

#[test]
fn in_out_tensors_and_archives() {
    let folder = Folder::new();
    let matrix = |values: &[f32]| npy("<f4", &[2, 2], &float_bytes(values));
    let (a, b) = (matrix(&[1.0, 2.0, 3.0, 4.0]), matrix(&[5.0, 6.0, 7.0, 8.0]));
    let c = matrix(&[10.0, 20.0, 30.0, 40.0]);
    for (name, contents) in [("a.npy", &a), ("b.npy", &b), ("c.npy", &c)] {
        folder.write(name, contents);
    }
    let scalars = "--in a=2 --in b=0.5";
    let separate = folder.succeeds(&format!("run sgemm.tw --in A=a.npy --in B=b.npy --in C=c.npy {scalars}"));
    assert!(separate.ends_with("[43.000000, 54.000000, 101.000000, 120.000000]\n"), "{separate}");
    for (name, method) in
        [("stored.npz", zip::CompressionMethod::Stored), ("deflated.npz", zip::CompressionMethod::Deflated)]
    {
        folder.write(name, npz(&[("A", a.clone()), ("B", b.clone()), ("C", c.clone())], method));
        assert_eq!(folder.succeeds(&format!("run sgemm.tw --in {name} {scalars}")), separate, "{name}");
    }
    // Scalars may be in the archive, and the archive can be combined with single files.
    let scalar = |value: f32| npy("<f4", &[], &float_bytes(&[value]));
    let stored = zip::CompressionMethod::Stored;
    folder.write("some.npz", npz(&[("a", scalar(2.0)), ("b", scalar(0.5)), ("A", a.clone())], stored));
    assert_eq!(folder.succeeds("run sgemm.tw --in some.npz --in B=b.npy --in C=c.npy"), separate);
    folder.fails("run sgemm.tw --in some.npz --in A=a.npy", 2, &["--in gives A twice"]);
    folder.write("other.npz", npz(&[("Q", a.clone())], stored));
    folder.fails("run sgemm.tw --in other.npz", 1, &["`sgemm` has no input Q"]);
    folder.write("broken.npz", "no archive");
    folder.fails("run sgemm.tw --in broken.npz", 1, &["broken.npz: not a .npz file"]);
    folder.write("damaged.npz", npz(&[("A", a[..a.len() - 4].to_vec())], stored));
    folder.fails("run sgemm.tw --in damaged.npz", 1, &["damaged.npz: A: it is cut short"]);
    folder.fails("run sgemm.tw --in missing.npz", 1, &["missing.npz: No such file"]);
    // A reduction without an initial value warns on standard error, and starts from the caller's
    // tensor.
    folder.floats("x.npy", &[3], &[1.0, 2.0, 3.0]);
    folder.floats("s.npy", &[], &[100.0]);
    let ended = folder.tilewright("run warned.tw --in x=x.npy --in s=s.npy");
    assert_eq!(ended.status, 0);
    assert!(
        ended.out.starts_with("s: float32()  checksum ") && ended.out.ends_with("[106.000000]\n"),
        "{}",
        ended.out
    );
    assert!(ended.err.contains("warning[uninitialized-reduction]"), "{}", ended.err);
}

#[test]
fn results_are_written_as_npy_files_that_can_be_read_again() {
    let folder = Folder::new();
    folder.write(
        "kinds.tw",
        "def kinds(int(N) x) -> (i, f, d, h, b, u, l, s, m) {
           i(k) = x(k)
           f(k) = float(x(k)) / 2
           d(k) = double(x(k)) / 4
           h(k) = half(x(k))
           b(k) = x(k) > 1
           u(k) = uint8(x(k))
           l(k) = int64(x(k)) * 4294967296
           s +=! x(k)
           m(k, j) = 10 * x(k) + j where j in 0:2
         }\n",
    );
    folder.ints("x.npy", &[3], &[1, 2, -3]);
    let out = folder.succeeds("run kinds.tw --in x=x.npy --out new/results");
    let names: Vec<&str> = out.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(names, ["i", "f", "d", "h", "b", "u", "l", "s", "m"]);
    assert!(out.contains("m: int32(3, 2)  checksum ") && out.contains("  -> new/results/m.npy\n"), "{out}");
    let le = |values: &[i32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    folder.assert_npy("new/results/i.npy", "<i4", &[3], &le(&[1, 2, -3]));
    folder.assert_npy("new/results/f.npy", "<f4", &[3], &float_bytes(&[0.5, 1.0, -1.5]));
    let doubles: Vec<u8> = [0.25f64, 0.5, -0.75].iter().flat_map(|value| value.to_le_bytes()).collect();
    folder.assert_npy("new/results/d.npy", "<f8", &[3], &doubles);
    // The numbers 1, 2 and -3 in half precision.
    folder.assert_npy("new/results/h.npy", "<f2", &[3], &[0x00, 0x3c, 0x00, 0x40, 0x00, 0xc2]);
    folder.assert_npy("new/results/b.npy", "|b1", &[3], &[0, 1, 0]);
    folder.assert_npy("new/results/u.npy", "|u1", &[3], &[1, 2, 253]);
    let longs: Vec<u8> =
        [1i64 << 32, 2 << 32, -3 << 32].iter().flat_map(|value| value.to_le_bytes()).collect();
    folder.assert_npy("new/results/l.npy", "<i8", &[3], &longs);
    folder.assert_npy("new/results/s.npy", "<i4", &[], &le(&[0]));
    folder.assert_npy("new/results/m.npy", "<i4", &[3, 2], &le(&[10, 11, 20, 21, -30, -29]));
    // A second run gives the same text and the same bytes, and leaves no temporary files.
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    let first = read("new/results/m.npy");
    assert_eq!(folder.succeeds("run kinds.tw --in x=x.npy --out new/results"), out);
    assert_eq!(read("new/results/m.npy"), first);
    assert_eq!(fs::read_dir(folder.path("new/results")).unwrap().count(), 9);
    // A result can be an input of the next run.
    let doubled = folder.succeeds("run double.tw --in x=new/results/f.npy");
    assert!(doubled.ends_with("[1.000000, 2.000000, -3.000000]\n"), "{doubled}");
    folder.fails("run double.tw --in x=new/results/i.npy", 1, &["int32", "float32"]);
    // Results cannot be written to these paths.
    folder.fails(
        "run double.tw --sizes N=1 --out double.tw",
        1,
        &["--out double.tw is a file, not a folder"],
    );
    folder.fails("run double.tw --sizes N=1 --out double.tw/results", 1, &["--out double.tw/results"]);
}

#[test]
fn a_seed_means_the_same_data_every_time() {
    let folder = Folder::new();
    let run = |seed: &str| folder.succeeds(&format!("run double.tw --sizes N=100 {seed}"));
    let zero = run("");
    assert_eq!(run(""), zero);
    assert_eq!(run("--seed 0"), zero);
    assert_ne!(run("--seed 1"), zero);
    assert_eq!(run("--seed 18446744073709551615"), run("--seed 18446744073709551615"));
    // The generated data of an input does not depend on the rest of the program.
    folder.write("more.tw", "def more(int(K) a, float(N) x) -> (y, z) { y(i) = 2 * x(i)\n z(i) = a(i) }\n");
    let more = folder.succeeds("run more.tw --sizes N=100,K=3");
    assert_eq!(more.lines().next().unwrap(), zero.trim_end());
    // Generated integers that are used as an index stay within bounds.
    folder.write("gather.tw", "def gather(float(N) x, int(M) k) -> (y) { y(i) = x(k(i)) }\n");
    folder.succeeds("run gather.tw --sizes N=2,M=1000");
}

#[test]
fn damaged_and_foreign_npy_files_are_refused() {
    let folder = Folder::new();
    let data = float_bytes(&[1.0, 2.0, 3.0, 4.0]);
    let whole = npy("<f4", &[4], &data);
    let text = |descr: &str, fortran: &str, shape: &str| npy_with(&header(descr, fortran, shape), &data);
    let table: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", Vec::new(), "not a .npy file"),
        ("words", b"these are only words, and no numbers".to_vec(), "not a .npy file"),
        ("magic", whole[..8].to_vec(), "its header is cut short"),
        ("header", whole[..60].to_vec(), "its header is cut short"),
        (
            "data",
            whole[..whole.len() - 1].to_vec(),
            "it is cut short: its header announces 16 bytes of data, and it has 15",
        ),
        ("fortran", text("<f4", "True", "(4,)"), "Fortran order"),
        ("big", text(">f4", "False", "(4,)"), "big-endian (>f4)"),
        ("complex", text("<c8", "False", "(2,)"), "it holds elements of type <c8"),
        ("negative", text("<f4", "False", "(-4,)"), "(-4,)"),
        ("huge", text("<f4", "False", "(99999999999, 99999999999)"), "which is larger than any memory"),
        ("large", text("<f4", "False", "(1000000000000,)"), "it is cut short"),
        ("shapeless", npy_with("{'descr': '<f4', 'fortran_order': False}", &data), "its header has no shape"),
        ("future", [&b"\x93NUMPY\x09\x00"[..], &whole[8..]].concat(), "version 9 of the .npy format"),
    ];
    for (name, contents, reason) in table {
        folder.write(&format!("{name}.npy"), contents);
        let line = format!("run double.tw --in x={name}.npy");
        folder.fails(&line, 1, &[&format!("error: {name}.npy: "), reason]);
    }
    fs::create_dir(folder.path("dir.npy")).unwrap();
    folder.fails("run double.tw --in x=dir.npy", 1, &["dir.npy: "]);
    folder.fails("run double.tw --in x=absent.npy", 1, &["absent.npy: No such file"]);
    // Complete files of the wrong type.
    folder.write("double.npy", npy("<f8", &[2], &data));
    folder.fails(
        "run double.tw --in x=double.npy",
        1,
        &["x is float32 in the program, but double.npy holds float64", "x.astype(np.float32)"],
    );
    folder.floats("matrix.npy", &[2, 2], &[0.0; 4]);
    folder.fails(
        "run double.tw --in x=matrix.npy",
        1,
        &["error[rank-mismatch]", "x (matrix.npy) has the shape (2, 2)"],
    );
    folder.write("fixed.tw", "def fixed(float(N, 3) x) -> (y) { y(i) +=! x(i, c) }\n");
    folder.fails(
        "run fixed.tw --in x=matrix.npy",
        1,
        &["error[size-mismatch]", "is 3, but x (matrix.npy) has 2"],
    );
    folder.write("pairs.tw", "def pairs(float(2*N) x) -> (float(N) y) { y(i) = x(2*i) + x(2*i + 1) }\n");
    folder.fails("run pairs.tw --in x=vector.npy --sizes N=1", 1, &["vector.npy: No such file"]);
    folder.write("vector.npy", &whole);
    folder.fails(
        "run pairs.tw --in x=vector.npy --sizes N=1",
        1,
        &["x has the shape (2,), but vector.npy has (4,)"],
    );
    assert!(
        folder.succeeds("run pairs.tw --in x=vector.npy --sizes N=2").ends_with("[3.000000, 7.000000]\n")
    );
    // Version 2 of the format, with a longer header, is accepted.
    let mut second = b"\x93NUMPY\x02\x00".to_vec();
    second.extend((whole.len() as u32 - 10 - 16).to_le_bytes());
    second.extend(&whole[10..]);
    folder.write("second.npy", second);
    let out = folder.succeeds("run double.tw --in x=second.npy");
    assert!(out.ends_with("[2.000000, 4.000000, 6.000000, 8.000000]\n"), "{out}");
}

#[test]
fn an_index_from_data_that_leaves_its_tensor_fails_the_run() {
    let folder = Folder::new();
    folder.write("gather.tw", "def gather(float(N) x, int(M) index) -> (y) {\n  y(i) = x(index(i))\n}\n");
    folder.ints("index.npy", &[4], &[0, 1, 7, 2]);
    folder.fails(
        "run gather.tw --sizes N=4 --in index=index.npy --out results --target interp",
        1,
        &[
            "error[out-of-bounds]: `x(7)` does not exist: index 7 must be in 0 to 3",
            " --> gather.tw:2:10",
            "at i = 2",
        ],
    );
    // A failed run leaves no results.
    assert!(!folder.path("results").exists());
    folder.ints("index.npy", &[2], &[0, -1]);
    folder.fails(
        "run gather.tw --sizes N=4 --in index=index.npy --target interp",
        1,
        &["`x(-1)`", "index -1", "at i = 1"],
    );
    folder.write(
        "bins.tw",
        "def bins(int(M) k) -> (h) {
             h(b, 1) +=! 1 where b = k(i), b in 0:3
             h(b, 0) +=! 1 where b = k(i), b in 0:3\n}\n",
    );
    folder.ints("k.npy", &[2], &[0, 3]);
    folder.fails(
        "run bins.tw --in k=k.npy --target interp",
        1,
        &["error[out-of-bounds]", "index is 3", "0:3", "at i = 1"],
    );
}

#[cfg(unix)]
#[test]
fn output_that_nobody_can_take_is_no_crash() {
    let folder = Folder::new();
    let lines = [
        "check mm.tw",
        "show mm.tw --stage ranges",
        "run double.tw --sizes N=3",
        "show mm.tw --stage asm --sizes M=3,N=3,K=3",
        "bench double.tw --sizes N=3 --time 1ms",
        "--help",
        "--version",
        "run --help",
    ];
    for line in lines {
        // If the reader is gone already, the command ends quietly.
        let mut child = folder
            .command(&format!("{line} "))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ended = CommandOutput::new(line, child.wait_with_output().unwrap());
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{line}");
        // Standard output is closed.
        let mut shell = Command::new("sh");
        let closed = format!("exec \"$0\" {line} >&-");
        shell.args(["-c", &closed, env!("CARGO_BIN_EXE_tilewright")]).current_dir(folder.0.path());
        CommandOutput::new(line, shell.output().unwrap());
    }
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    for line in &lines[..5] {
        let output = folder.command(line).stdout(full.try_clone().unwrap()).output().unwrap();
        let ended = CommandOutput::new(line, output);
        assert_eq!(ended.status, 3, "{line}");
        assert!(ended.err.starts_with("error: cannot write to standard output"), "{line}\n{}", ended.err);
    }
    for line in ["--help", "check bad.tw", "run mm.tw", "run mm.tw --nonsense"] {
        let mut command = folder.command(line);
        command.stdout(full.try_clone().unwrap()).stderr(full.try_clone().unwrap());
        CommandOutput::new(line, command.output().unwrap());
    }
}

#[cfg(unix)]
#[test]
fn a_refused_file_fails_the_check_also_when_nobody_reads() {
    let folder = Folder::new();
    let mut child =
        folder.command("check bad.tw mm.tw").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(CommandOutput::new("check", child.wait_with_output().unwrap()).status, 1);
}

const EDGES: &str = "def blur(float(H, W) image) -> (out) {
  f = repeat(image)
  out(y, x) = (f(y, x - 1) + f(y, x + 1)) / 2
}
def find(float(H, W) image, float low, float high, static int rounds = 2) -> (edges) {
  e[0] = blur(image)
  for n in 0:rounds {
    e[n + 1] = blur(e[n])
  }
  edges(y, x) = e[rounds](y, x) > high ? 2 : e[rounds](y, x) > low ? 1 : 0
}
";

#[test]
fn a_name_that_is_no_input_is_refused_with_the_closest_parameter() {
    let folder = Folder::new();
    folder.write("edges.tw", EDGES);
    folder.floats("a.npy", &[2, 3], &[1.0; 6]);
    let listed = "It has: image, low, high";
    folder.fails("run edges.tw --in hihg=.4", 1, &["`find` has no input hihg. Did you mean high?", listed]);
    folder.fails("run edges.tw --in img=a.npy", 1, &["`find` has no input img. Did you mean image?", listed]);
    folder.fails("run edges.tw --in image=3", 2, &["image is a tensor and takes a file"]);
}

#[test]
fn scalars_that_are_made_up_are_named_once_some_input_is_given() {
    let folder = Folder::new();
    folder.write("edges.tw", EDGES);
    folder.floats("a.npy", &[2, 3], &[1.0; 6]);
    let note = |line: &str| {
        let ended = folder.tilewright(line);
        assert_eq!(ended.status, 0, "{}", ended.err);
        ended.err.lines().find(|line| line.contains("random")).map(str::to_owned)
    };
    let both = note("run edges.tw --target interp --in image=a.npy").unwrap();
    assert!(both.starts_with("note: low = ") && both.contains(" and high = "), "{both}");
    assert!(both.ends_with(" are random: give --in low=… --in high=…"), "{both}");
    let one = note("run edges.tw --target interp --in image=a.npy --in low=.5").unwrap();
    assert!(one.starts_with("note: high = ") && one.ends_with(" is random: give --in high=…"), "{one}");
    assert_eq!(note("run edges.tw --target interp --in image=a.npy --in low=.5 --in high=1"), None);
    assert_eq!(note("run edges.tw --target interp --sizes H=2,W=3"), None);
}

#[test]
fn a_negative_number_of_stages_is_named() {
    let folder = Folder::new();
    folder.write("edges.tw", EDGES);
    let line = "run edges.tw --target interp --sizes H=2,W=3,rounds=-1";
    folder.fails(line, 1, &["the static parameter `rounds` is -1 here"]);
}

#[test]
fn the_function_that_no_other_calls_is_taken() {
    let folder = Folder::new();
    folder.write("other.tw", EDGES);
    assert!(folder.succeeds("run other.tw --target interp --sizes H=2,W=3").starts_with("edges: "));
    folder.write("two.tw", [EDGES, DOUBLE].concat());
    folder.fails("run two.tw --sizes H=2,W=3", 2, &["two.tw has several functions"]);
}
