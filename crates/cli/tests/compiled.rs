//! Tests of `run`, `show` and `bench` with compiled code: results, schedules and their mistakes,
//! and measurements.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use examples::examples;
use serde_json::Value;
use support::{CommandOutput, Folder};

const SIZES: &str = "--sizes M=20,N=33,K=7";

/// Unrolled copies of a large register tile must not share so many loads that the accumulators are
/// spilled.
#[test]
#[cfg(target_arch = "x86_64")]
fn results_stay_in_registers_when_a_reduction_is_written_out() {
    let folder = Folder::new();
    folder.write(
        "conv.tw",
        "def conv(float(C, W) I, const float(K, C, S) weight) -> (O) { O(k, x) +=! I(c, x + s) * weight(k, c, s) }",
    );
    folder.write(
        "tile.sched",
        "split O.k -> ko, k1:2, kv:8
         split O.x -> xo, xi:6
         reorder O.ko, O.xo, O.c, O.s, O.xi, O.k1, O.kv
         promote weight at root -> packed_weight packed (d0/16, d1, d2, d0%16)
         promote O at O.xo -> tile registers
         vectorize O.kv
         unroll O.k1
         unroll O.xi
         unroll O.s",
    );
    let sizes = "--sizes C=64,W=50,K=32,S=3 --vectors avx2 --threads 1";
    let asm = folder.succeeds(&format!("show conv.tw --stage asm {sizes} --schedule tile.sched"));
    let spills: Vec<&str> =
        asm.lines().filter(|line| line.contains("ymm") && line.contains("(%rsp)")).collect();
    assert!(asm.contains("vfmadd"), "{asm}");
    assert_eq!(spills, [""; 0]);
}

/// Every example, with the command in its text that runs it.
fn commands() -> Vec<(PathBuf, String)> {
    let command = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("# tilewright run ")).unwrap();
        // The quotes are for a shell.
        (path, line.replace(['"', '\''], ""))
    };
    examples().into_iter().map(command).collect()
}

/// Runs the command line of an example in the root of the repository.
#[track_caller]
fn in_repository(folder: &Folder, line: &str) -> CommandOutput {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    CommandOutput::new(line, folder.command(line).current_dir(root).output().unwrap())
}

#[test]
fn every_example_computes_what_the_interpreter_does() {
    let folder = Folder::new();
    let examples = commands();
    for (path, line) in examples {
        let ended = in_repository(&folder, &format!("run {line} --check"));
        assert_eq!(ended.status, 0, "{}: {}", path.display(), ended.err);
        assert!(ended.err.ends_with("schedule: default\n"), "{}: {}", path.display(), ended.err);
    }
}

#[test]
fn without_rounding_the_bits_are_those_of_the_interpreter() {
    let folder = Folder::new();
    folder.write("bins.tw", "def bins(uint8(N) x) -> (h) { h(b) +=! 1 where b = x(i), b in 0:256 }\n");
    folder.write("table.tw", "def table(int(N) x, int(N) y) -> (t) { t(i, j) = x(i) * y(j) - i % 3 }\n");
    let lines = [
        "double.tw --sizes N=1000",
        "bins.tw --sizes N=5000",
        "table.tw --sizes N=37",
        "strided.tw --sizes N=9,s=2",
    ];
    for line in lines {
        let wanted = folder.succeeds(&format!("run {line} --target interp --seed 3"));
        for options in ["", "--threads 1", "--threads 5", "--vectors baseline", "--check"] {
            assert_eq!(
                folder.succeeds(&format!("run {line} --seed 3 {options}")),
                wanted,
                "{line} {options}"
            );
        }
    }
}

/// Infinities and NaN as literals, in single and in double precision, and converted to an integer.
#[test]
fn infinities_and_nan_are_literals_on_every_target() {
    let folder = Folder::new();
    let program = "def f(float(N) x, double(N) d) -> (masked, holes, deep, largest, saturated) {
        masked(i) = i < 2 ? -inf : x(i)
        holes(i) = i % 2 == 0 ? nan : x(i)
        deep(i) = d(i) > 0 ? inf : d(i) + nan
        largest max=! masked(i) + (isnan(holes(i)) ? 0 : inf)
        saturated = int(inf)
    }";
    folder.write("f.tw", program);
    let wanted = folder.succeeds("run f.tw --sizes N=3 --target interp");
    for part in ["[-inf, -inf, ", "[nan, ", "[2147483647]"] {
        assert!(wanted.to_lowercase().contains(part), "{wanted}");
    }
    for options in ["", "--check", "--vectors baseline --threads 1"] {
        assert_eq!(folder.succeeds(&format!("run f.tw --sizes N=3 {options}")), wanted, "{options}");
    }
    folder.succeeds("run f.tw --sizes N=1000 --check");
    let shown = folder.succeeds("show f.tw --stage program");
    assert!(shown.contains("? -inf : x(i)") && shown.contains("? nan : x(i)"), "{shown}");
    assert!(folder.succeeds("prove f.tw --sizes N=100").contains("proved"));
    for stage in ["cuda", "opencl"] {
        let code = folder.succeeds(&format!("show f.tw --sizes N=100 --stage {stage}"));
        for part in ["-INFINITY", "NAN", "(double)INFINITY", "(double)NAN"] {
            assert!(code.contains(part), "{stage} has no {part}: {code}");
        }
    }
}

#[test]
fn a_size_of_0_gives_empty_results_and_neutral_elements() {
    let folder = Folder::new();
    folder.write(
        "rows.tw",
        "def rows(float(M, N) x) -> (twice, sum, most) {
            twice(i, j) = 2 * x(i, j)
            sum(i) +=! x(i, j)
            most(i) max=! x(i, j)
        }",
    );
    for options in ["", "--check", "--target interp"] {
        let out = folder.succeeds(&format!("run rows.tw --sizes M=2,N=0 {options}"));
        for part in ["twice: float32(2, 0)", "[0.000000, 0.000000]", "[-inf, -inf]"] {
            assert!(out.contains(part), "{options}: {out}");
        }
        let out = folder.succeeds(&format!("run rows.tw --sizes M=0,N=3 {options}"));
        assert!(out.contains("sum: float32(0)"), "{options}: {out}");
    }
    folder.succeeds("run rows.tw --sizes M=2,N=0 --out results");
    folder.assert_npy("results/twice.npy", "<f4", &[2, 0], &[]);
    // Kernels are for sizes of at least 1, and no shape is negative.
    let least = "the size `N` must be at least 1, and is 0";
    for command in ["bench", "tune --trials 1", "show --stage loops"] {
        folder.fails(&format!("{command} rows.tw --sizes M=2,N=0"), 1, &[least]);
    }
    folder.fails("run rows.tw --sizes M=2,N=-1", 1, &["must be at least 1, and is -1"]);
    folder.write("conv.tw", "def conv(float(N) x, float(K) w) -> (y) { y(i) +=! x(i + k) * w(k) }");
    folder.fails("run conv.tw --sizes N=0,K=3", 1, &[least]);
}

#[test]
fn results_go_to_files_as_those_of_the_interpreter_do() {
    let folder = Folder::new();
    folder.succeeds("run sgemm.tw --sizes N=5,M=6,K=7 --out interp --target interp");
    let out = folder.succeeds("run sgemm.tw --sizes N=5,M=6,K=7 --out cpu");
    assert!(out.starts_with("C: float32(5, 7)  checksum ") && out.ends_with("  -> cpu/C.npy\n"), "{out}");
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    let (interp, cpu) = (read("interp/C.npy"), read("cpu/C.npy"));
    assert_eq!(interp[..128], cpu[..128]);
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes[128..].chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    };
    for (left, right) in floats(&interp).into_iter().zip(floats(&cpu)) {
        assert!((left - right).abs() < 1e-5, "{left} {right}");
    }
}

#[test]
fn the_schedule_that_was_used_is_named() {
    let folder = Folder::new();
    let named = |options: &str| {
        let ended = folder.tilewright(&format!("run mm.tw {SIZES} {options}"));
        assert_eq!(ended.status, 0, "{}", ended.err);
        ended.err
    };
    assert_eq!(named(""), "schedule: default\n");
    folder.write(
        "mm.sched",
        "split C.j -> jo, ji:8  # lanes\nreorder C.jo, C.k, C.ji\nvectorize C.ji\nparallel C.i\n",
    );
    assert_eq!(named("--schedule mm.sched --check"), "schedule: mm.sched\n");
    // Without steps, the loops are those of the program text.
    folder.write("empty.sched", "");
    assert_eq!(named("--schedule empty.sched --check"), "schedule: empty.sched\n");
    folder.write("comment.sched", "# nothing yet\n");
    assert_eq!(named("--schedule comment.sched --check --threads 1"), "schedule: comment.sched\n");
    assert_eq!(named("--target interp"), "");
}

#[test]
fn a_schedule_that_is_shown_can_be_given_back() {
    let folder = Folder::new();
    for sizes in [SIZES, "--sizes M=64,N=64,K=64"] {
        let schedule = folder.succeeds(&format!("show mm.tw --stage schedule {sizes}"));
        assert!(schedule.contains("vectorize C."), "{schedule}");
        folder.write("default.sched", &schedule);
        let given = format!("{sizes} --schedule default.sched");
        assert_eq!(folder.succeeds(&format!("show mm.tw --stage schedule {given}")), schedule);
        let loops = folder.succeeds(&format!("show mm.tw --stage loops {sizes}"));
        assert_eq!(folder.succeeds(&format!("show mm.tw --stage loops {given}")), loops);
        assert_eq!(
            folder.succeeds(&format!("run mm.tw {given}")),
            folder.succeeds(&format!("run mm.tw {sizes}"))
        );
    }
    // The schedule is printed as it was parsed: without comments and extra spaces.
    folder.write("odd.sched", "  split C.j   -> jo,ji:8 # lanes\n\n vectorize  C.ji\n");
    let line = format!("show mm.tw --stage schedule {SIZES} --schedule odd.sched");
    assert_eq!(folder.succeeds(&line), "split C.j -> jo, ji:8\nvectorize C.ji\n");
}

#[test]
fn show_prints_loops_and_code() {
    let folder = Folder::new();
    folder.write("empty.sched", "");
    assert_eq!(
        folder.succeeds("show mm.tw --stage loops --sizes M=2,N=3,K=4 --schedule empty.sched"),
        "mm(float32 A[2, 4], float32 B[4, 3]) -> float32 C[2, 3]
  for i in 2
    for j in 3
      C[i, j] = 0.0
      for k in 4
        C[i, j] += A[i, k] * B[k, j]
"
    );
    let llvm = folder.succeeds(&format!("show mm.tw --stage llvm {SIZES}"));
    assert!(llvm.contains("define") && llvm.contains("ret "), "{llvm}");
    let asm = folder.succeeds(&format!("show mm.tw --stage asm {SIZES} --threads 1 --vectors baseline"));
    assert!(asm.contains(".text") && asm.contains("ret"), "{asm}");
    // A single thread gets no parallel loop.
    let loops = |threads: usize| {
        folder.succeeds(&format!("show mm.tw --stage loops --sizes M=512,N=512,K=512 --threads {threads}"))
    };
    assert!(!loops(1).contains("parallel") && loops(4).contains("parallel"), "{}", loops(4));
    // The stages from schedule on need all sizes.
    for stage in ["schedule", "loops", "llvm", "asm"] {
        let line = format!("show mm.tw --stage {stage}");
        folder.fails(
            &format!("{line} --sizes M=2"),
            1,
            &["`mm` needs values for K, N (known: M=2): give --sizes K=…,N=…"],
        );
        folder.fails(&format!("{line} --sizes Q=2"), 1, &["no size or integer scalar Q"]);
        folder.fails(&format!("{line} {SIZES} --target interp"), 2, &["interp"]);
    }
    let space = folder.succeeds(&format!("show mm.tw --stage space {SIZES}"));
    assert!(space.contains("C.vector") && space.contains(" points; about "), "{space}");
    for stage in ["llvm", "asm"] {
        let line = format!("show mm.tw --stage {stage} {SIZES} --target cuda:0");
        folder.fails(&line, 2, &[&format!("--stage {stage} is for --target cpu")]);
    }
    // GPU stages need no GPU.
    let space = folder.succeeds(&format!("show mm.tw --stage space {SIZES} --target cuda:0"));
    assert!(space.contains("C.stages") && space.contains("multiprocessors"), "{space}");
    let cost = folder.succeeds(&format!("show mm.tw --stage cost {SIZES} --target cuda:0"));
    assert!(cost.contains("kernel 1") && cost.contains("on a multiprocessor"), "{cost}");
    let cuda = folder.succeeds(&format!("show mm.tw --stage cuda {SIZES}"));
    assert!(cuda.contains("__global__") && cuda.contains("// mm\n"), "{cuda}");
    let opencl = folder.succeeds(&format!("show mm.tw --stage opencl {SIZES}"));
    assert!(opencl.contains("__kernel"), "{opencl}");
    assert!(folder.succeeds(&format!("show mm.tw --stage loops {SIZES} --target cuda")).contains("thread.x"));
    for stage in ["hls", "c"] {
        let has =
            "ranges, program, graph, dependences, space, cost, schedule, loops, llvm, asm, cuda, opencl";
        let parts = [&format!("this build has no stage {stage} yet"), has];
        folder.fails(&format!("show mm.tw --stage {stage}"), 3, &parts);
    }
}

#[test]
fn mistakes_in_the_text_of_a_schedule_are_drawn() {
    let folder = Folder::new();
    folder.write("bad.sched", "split C.i -> io, ii:4\nvectorise C.j\nsplit j -> jo, ji:8\n");
    for command in ["run", "bench", "show --stage loops", "show --stage schedule"] {
        folder.fails(
            &format!("{command} mm.tw {SIZES} --schedule bad.sched"),
            1,
            &[
                "error[syntax]: there is no step `vectorise`\n --> bad.sched:2:1",
                "did you mean `vectorize`?",
                "error[syntax]: `j` does not name the statement of the loop\n --> bad.sched:3:7",
            ],
        );
    }
}

#[test]
fn schedules_that_cannot_be_read() {
    let folder = Folder::new();
    fs::create_dir(folder.path("dir.sched")).unwrap();
    folder.write("latin.sched", b"# fine\nvectorize C.j # \xe9\n");
    for command in ["run", "bench", "show --stage asm"] {
        let fails = |schedule: &str, message: &str| {
            folder.fails(&format!("{command} mm.tw {SIZES} --schedule {schedule}"), 1, &[message]);
        };
        fails("missing.sched", "error: cannot read missing.sched: No such file");
        fails("dir.sched", "error: cannot read dir.sched: Is a directory");
        fails("latin.sched", "error: latin.sched:2: this is not text in UTF-8");
    }
}

#[test]
fn a_step_that_cannot_be_done_is_drawn_in_its_file() {
    let folder = Folder::new();
    let refused = |steps: &str| {
        folder.write("bad.sched", steps);
        let ended = folder.tilewright(&format!("run mm.tw {SIZES} --schedule bad.sched"));
        assert_eq!((ended.status, ended.out.as_str()), (1, ""), "{steps}\n{}", ended.err);
        ended.err
    };
    assert_eq!(
        refused("# rows\nsplit C.i -> io, ii:4\n\n  parallel C.k   # no\nvectorize C.j\n"),
        "error: `C.k` carries a dependence: its iterations are reduced into the same elements; `rfactor` gives each its own total
 --> bad.sched:4:12
  |
4 |   parallel C.k   # no
  |            ^^^

"
    );
    // The caret is under the part that the reason is about.
    let table = [
        (
            "vectorize C.q",
            "`C` has no loop `q`; around it there are `i`, `j` and `k`",
            "1:11",
            "          ^^^",
        ),
        ("vectorize D.i", "there is no statement `D`; there is `C`", "1:11", "          ^^^"),
        ("fuse C.i, C.k -> t", "`C.i` and `C.k` are not directly nested", "1:11", "          ^^^"),
        ("promote C at C.i -> A packed", "the name `A` is taken", "1:21", "                    ^"),
        ("inline B", "`B` cannot be inlined", "1:8", "       ^"),
        (
            "promote B at C.i -> Bp packed (d1, d2, d0)",
            "`B` cannot be promoted at `C.i`: it has no dimension d2: the last is d1",
            "1:36",
            "                                   ^^",
        ),
        (
            "promote B at C.i -> Bp packed (d1%4, d1/8)",
            "`B` cannot be promoted at `C.i`: the layout leaves out dimension d0",
            "1:32",
            "                               ^^^^^^^^^^",
        ),
    ];
    for (step, reason, place, carets) in table {
        let message = refused(step);
        let drawn = format!(" --> bad.sched:{place}\n  |\n1 | {step}\n  | {carets}\n");
        assert!(message.starts_with(&format!("error: {reason}")), "{message}");
        assert!(message.contains(&drawn), "{message}{drawn}");
    }
    // Each step is legal, but not their combination: the message points at the step that causes the
    // refusal.
    assert_eq!(
        refused("split C.j -> jo, ji:8\npromote C at C.jo -> acc registers\nparallel C.i\n"),
        "error: `acc` is in registers, so `C.ji` must be unrolled or vectorised: registers cannot be indexed at run time
 --> bad.sched:2:22
  |
2 | promote C at C.jo -> acc registers
  |                      ^^^

"
    );
    // The program is checked too.
    folder.fails("run bad.tw --sizes N=3 --schedule bad.sched", 1, &["error[out-of-bounds]"]);
}

#[test]
fn an_index_from_data_that_leaves_its_tensor_is_shown_where_it_is_written() {
    let folder = Folder::new();
    folder.write("gather.tw", "def gather(float(N) x, int(M) index) -> (y) {\n  y(i) = x(index(i))\n}\n");
    folder.ints("index.npy", &[4], &[0, 1, 7, 2]);
    for command in ["run --out results", "run --check", "bench"] {
        folder.fails(
            &format!("{command} gather.tw --sizes N=4 --in index=index.npy"),
            1,
            &["error[out-of-bounds]", "`x`", " --> gather.tw:2:10", "--target interp"],
        );
    }
    assert!(!folder.path("results").exists());
}

#[test]
fn options_for_compiling_are_checked() {
    let folder = Folder::new();
    for command in ["run", "bench --time 1ms", "show --stage loops"] {
        let line = format!("{command} mm.tw {SIZES}");
        for threads in ["0", "-1", "x", "1025", ""] {
            folder.fails(
                &format!("{line} --threads={threads}"),
                2,
                &["--threads", "a number from 1 to 1024"],
            );
        }
        folder.fails(&format!("{line} --vectors sse9"), 2, &["baseline, avx2, avx512"]);
        // More threads than cores are allowed.
        folder.succeeds(&format!("{line} --threads 64"));
        folder.succeeds(&format!("{line} --vectors baseline"));
    }
    for time in ["5", "ms", "-1s", "1year"] {
        folder.fails(&format!("bench mm.tw {SIZES} --time={time}"), 2, &["such as 500ms"]);
    }
    folder.fails(&format!("bench mm.tw {SIZES} --samples 0"), 2, &["from 1 to 1000000"]);
    folder.fails(&format!("bench mm.tw {SIZES} --samples 1000000000000"), 2, &["from 1 to 1000000"]);
    folder.fails(&format!("bench mm.tw {SIZES} --time -1s"), 2, &["write a time such as 500ms"]);
    folder.fails(&format!("bench mm.tw {SIZES} --time NaN"), 2, &["write a time such as 500ms"]);
    folder.fails(&format!("bench mm.tw {SIZES} --time 99999h"), 2, &["a time is at most 24h"]);
}

#[test]
fn bench_prints_a_table() {
    let folder = Folder::new();
    folder.write("mm.sched", "parallel C.i\n");
    let out = folder.succeeds(&format!("bench mm.tw {SIZES} --time 1ms --threads 1 --vectors baseline"));
    let rows: Vec<&str> = out.lines().map(|line| line[..11.min(line.len())].trim()).collect();
    assert_eq!(rows[0], "mm M=20,K=7");
    assert_eq!(
        rows[1..],
        ["target", "schedule", "median", "p10", "p90", "samples", "GFLOP/s", "GB/s", "memory", "compile"],
        "{out}"
    );
    assert!(
        out.contains("cpu, 1 thread, baseline vectors\n") && out.contains("schedule  default\n"),
        "{out}"
    );
    let out =
        folder.succeeds(&format!("bench mm.tw {SIZES} --time 1ms --threads 2 --schedule mm.sched --check"));
    assert!(out.contains("cpu, 2 threads") && out.contains("schedule  mm.sched\n"), "{out}");
}

#[test]
fn bench_prints_the_memory_of_temporaries() {
    let folder = Folder::new();
    folder.write(
        "two.tw",
        "def two(float(N, M) x) -> (y) { t(i, j) = x(i, j) + 1  y(i, j) = t(i, j) * t(i, j) }",
    );
    let bytes = |schedule: &str| -> i64 {
        folder.write("two.sched", schedule);
        let command = "bench two.tw --sizes N=10,M=64 --time 1ms --threads 2 --schedule two.sched --json";
        let found: Value = serde_json::from_str(&folder.succeeds(command)).unwrap();
        found["temporary_bytes"].as_i64().unwrap()
    };
    assert_eq!(bytes("inline t\n"), 0);
    assert_eq!(bytes("vectorize t.j\n"), 10 * 64 * 4);
    assert_eq!(bytes("compute_at t, y.i\n"), 64 * 4);
    // Each of the two threads has a row.
    assert_eq!(bytes("compute_at t, y.i\nparallel y.i\n"), 2 * 64 * 4);
}

#[test]
fn bench_prints_json() {
    let folder = Folder::new();
    let bench = |options: &str| -> Value {
        let out = folder.succeeds(&format!("bench several.tw:mm {SIZES} --time 2ms --json {options}"));
        assert_eq!(out.matches('\n').count(), 1, "{out}");
        serde_json::from_str(&out).unwrap()
    };
    let found = bench("--threads 2");
    assert_eq!(found["program"], "several.tw");
    assert_eq!(found["function"], "mm");
    assert_eq!(found["sizes"], serde_json::json!({"M": 20, "N": 33, "K": 7}));
    assert_eq!((&found["target"], &found["threads"]), (&"cpu".into(), &2.into()));
    assert_eq!(found["schedule_source"], "default");
    let number = |name: &str| found[name].as_f64().unwrap_or_else(|| panic!("{name} in {found}"));
    assert!(number("p10_us") <= number("median_us") && number("median_us") <= number("p90_us"), "{found}");
    assert!(number("samples") >= 30.0 && number("compile_ms") > 0.0, "{found}");
    // Rates refer to the median time.
    let seconds = number("median_us") / 1e6;
    let close = |rate: f64, amount: f64| (rate * 1e9 * seconds / amount - 1.0).abs() < 1e-9;
    assert!(close(number("gflops"), 2.0 * 20.0 * 33.0 * 7.0), "{found}");
    assert!(close(number("gbps"), 4.0 * (20.0 * 7.0 + 7.0 * 33.0 + 20.0 * 33.0)), "{found}");
    folder.write("mm.sched", "vectorize C.j\n");
    let found = bench("--schedule mm.sched --samples 5 --cold --seed 9 --check");
    assert_eq!(found["schedule_source"], "file");
    assert!(found["samples"].as_u64().unwrap() >= 5, "{found}");
}

#[test]
fn bench_takes_inputs_as_run_does() {
    let folder = Folder::new();
    folder.floats("x.npy", &[3], &[1.0, 2.0, 3.0]);
    let out = folder.succeeds("bench double.tw --in x=x.npy --time 1ms --json");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["sizes"], serde_json::json!({"N": 3}));
    // Tensors that are updated in place, scalars and constants.
    folder.succeeds("bench sgemm.tw --sizes N=5,M=6,K=7 --in a=0.5 --in b=0.5 --time 1ms --check");
    folder
        .write("fixed.tw", "def fixed(float(N) x, const float(N, N) w) -> (y) { y(i) +=! w(i, j) * x(j) }\n");
    folder.write("fixed.sched", "promote w at root -> wp packed (d1, d0)\n");
    folder.succeeds("bench fixed.tw --sizes N=20 --time 1ms --check --schedule fixed.sched");
    folder.fails("bench mm.tw", 1, &["`mm` needs values for M, K, N: give --sizes M=…,K=…,N=…"]);
    folder.fails("bench mm.tw --sizes M=1000000,K=1000000,N=1", 1, &["running `mm` takes", "free"]);
    folder.fails("bench double.tw --sizes N=9223372036854775807", 1, &["larger than any memory"]);
    folder.fails("bench bad.tw --sizes N=4", 1, &["error[out-of-bounds]"]);
    folder.fails("bench missing.tw", 1, &["cannot read missing.tw"]);
}
