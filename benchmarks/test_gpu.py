"""The harness of the GPU against stand-ins with known times: `python3 -m unittest discover benchmarks`.

A stand-in for `tilewright` answers as the real command does on a machine with cuda:0; one for Python speaks the protocol of
gpu_worker.py.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import gpu_table
import gpu_worker
import sanitizer
from contender import ROOT, program_arguments
from families.gpu import GPU
from operations import COUNTS, operations
from rounds import Record
from row import Row
from test_cpu import BENCHMARKS, executable
from tuning import Tuning
from workload import Way

try:
    import torch
except ImportError:
    torch = None

# Tuned takes 50 µs, by default 200; C1 cannot be tuned.
TILEWRIGHT = f"""#!{sys.executable}
import json, pathlib, sys
arguments = sys.argv[1:]
def after(option):
    return arguments[arguments.index(option) + 1]
if arguments[0] == "devices":
    for device in ({{"target": "cpu"}}, {{"target": "cuda:0", "device": "a GPU"}}):
        print(json.dumps(device))
    sys.exit()
if arguments[0] == "--version":
    print("tilewright 1.2.3")
    sys.exit()
if arguments[0] == "show":
    print('extern "C" __global__ void k() {{}}')
    sys.exit()
assert after("--target") == "cuda:0", arguments
assert "--threads" not in arguments, arguments
if arguments[0] == "tune":
    if "conv2d" in arguments[1]:
        sys.exit("error: no schedule fits")
    pathlib.Path(after("--cache")).touch()
    print(json.dumps({{"event": "trial", "seconds": 1.0, "best_us": 50.0}}))
    print(json.dumps({{"event": "done", "seconds": 2.0, "trials": 40, "failures": {{}}, "schedule": "split O.i -> a, b:4"}}))
    sys.exit()
if arguments[0] == "run":  # under the sanitizer
    print("O: float32(2, 2)")
    sys.exit()
assert arguments[0] == "bench", arguments
source = "cache" if "--cache" in arguments else "default"
time = {{"cache": 50.0, "default": 200.0}}[source]
print(json.dumps({{"target": "cuda:0", "schedule_source": source, "median_us": time, "p10_us": time}}))
"""

# All take 100 µs; cuDNN dies in its second burst, and the process with it.
PYTHON = f"""#!{sys.executable}
import json, pathlib, sys
script = sys.argv[1]
def say(message):
    print(json.dumps(message), flush=True)
if script.endswith("result_check.py"):
    say({{"error": 1e-7}})
    sys.exit()
if script.endswith("write_inputs.py"):
    say({{"LUT": "/a/table.npy"}})
    sys.exit()
assert script.endswith("gpu_worker.py"), script
say({{"ready": {{"device": "a GPU", "torch": "2.0", "cuda": "13.0", "cudnn": 91000}}}})
bursts = 0
for line in sys.stdin:
    question = json.loads(line)
    if "prepare" in question:
        say({{"unavailable": "has none"}} if question["prepare"] == "native" else {{"ready": {{"version": "1", "error": 0.0}}}})
    elif "measure" in question:
        bursts += question["measure"] == "cudnn"
        if bursts == 2:
            sys.exit("an illegal memory access was encountered")
        say({{"median_us": 100.0, "p10_us": 90.0}})
    else:
        say({{"forgotten": 0}})
"""

SANITIZER = f"""#!{sys.executable}
import sys
tool = sys.argv[2]
print("========= COMPUTE-SANITIZER")
if tool == "memcheck":
    print("========= ERROR SUMMARY: 0 errors")
else:
    print("========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)")
    sys.exit(99)
"""


class Harness(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.results = self.folder / "results.json"
        executable(self.folder / "python", PYTHON)
        executable(self.folder / "tilewright", TILEWRIGHT)

    def run_gpu(self, *options: str, status: int = 0, path: str = "") -> subprocess.CompletedProcess:
        command = [sys.executable, BENCHMARKS / "gpu.py", "--rounds", "2", "--tune", "2", "--json", self.results]
        command += ["--python", self.folder / "python", "--tilewright", self.folder / "tilewright", *options]
        environment = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def rows(self) -> dict[str, dict]:
        return {row["workload"]: row for row in json.loads(self.results.read_text())["results"]}

    def contenders(self, name: str) -> dict[str, dict]:
        return {contender["name"]: contender for contender in self.rows()[name]["contenders"]}

    def test_tuned_default_and_peer_side_by_side(self):
        done = self.run_gpu("--only", "gemm_1024", "--markdown", str(self.folder / "tables.md"))
        row = self.rows()["gemm_1024"]
        self.assertEqual((row["ratio"]["tuned"]["peer"], row["ratio"]["tuned"]["median"]), ("cublas", 2.0))
        self.assertEqual(row["tuning"]["schedule"], "split O.i -> a, b:4")
        self.assertEqual(self.contenders("gemm_1024")["ours, tuned"]["about"]["kernels"], 1)
        line = "| GEMM 1024x1024x1024 | 50.0 | 42950 | cublas 100 | 21475 | 2.00 (2.00–2.00) | 0.90 | yes | 200 | 4.00 |"
        self.assertIn(line, done.stdout)
        self.assertIn("| gemm: geometric mean, of cublas | 1 of 1 | 2.00 | 1.00 | yes |", done.stdout)
        self.assertIn("| candidates a second | 1 of 1 | 20.0 (20.0 at least, gemm_1024) | 15.0 | yes |", done.stdout)
        self.assertIn("a GPU; CUDA 13.0, PyTorch 2.0, cuDNN 91000, Tilewright 1.2.3", done.stdout)
        self.assertEqual((self.folder / "tables.md").read_text(), done.stdout)

    def test_what_fails_is_told_and_the_rest_goes_on(self):
        done = self.run_gpu("--only", "conv2d_yolo_c1,gemm_1024")
        convolution = self.contenders("conv2d_yolo_c1")
        self.assertIn("no schedule fits", convolution["ours, tuned"]["unavailable"])
        self.assertEqual(convolution["ours, default"]["time_us"], 200.0)
        self.assertIn("illegal memory access", convolution["cudnn"]["unavailable"])
        self.assertEqual(convolution["native"]["unavailable"], "has none")
        self.assertEqual(self.contenders("gemm_1024")["cublas"]["time_us"], 100.0)
        self.assertIn("- native: has none (conv2d_yolo_c1)", done.stdout)

    def test_libraries_that_died_serve_the_next_row(self):
        self.run_gpu("--only", "conv2d_yolo_c1,depthwise_conv2d_C32_M1_112x112_k3s1,mlp3")
        (mlp3,) = [name for name in self.rows() if name.startswith("mlp3")]
        self.assertEqual(self.contenders(mlp3)["eager"]["time_us"], 100.0)

    def test_a_resumed_run_keeps_its_rows(self):
        self.run_gpu("--only", "gemm_1024")
        executable(self.folder / "tilewright", TILEWRIGHT.replace('"cache": 50.0', '"cache": 25.0'))
        self.run_gpu("--only", "gemm_1024,gemm_2048", "--resume")
        times = {name: self.contenders(name)["ours, tuned"]["time_us"] for name in self.rows()}
        self.assertEqual(times, {"gemm_1024": 50.0, "gemm_2048": 25.0})
        self.run_gpu("--only", "gemm_1024", "--resume", "--tune", "9", status=2)

    def test_no_row_begins_that_would_end_too_late(self):
        done = self.run_gpu("--only", "gemm", "--within", "1")
        self.assertEqual(self.rows(), {})
        self.assertIn("6 rows are left out", done.stderr)

    def test_torch_compile_can_be_left_out(self):
        self.run_gpu("--only", "mlp3", "--skip-torch-compile")
        (name,) = self.rows()
        self.assertEqual(self.contenders(name)["compiled"]["unavailable"], "left out on request")
        self.assertEqual(self.rows()[name]["ratio"]["tuned"]["peer"], "eager")

    def test_large_tables_are_given_as_files(self):
        tune = 'if arguments[0] == "tune":'
        given = 'assert arguments[0] == "run" or after("--in") == "LUT=/a/table.npy", arguments'
        executable(self.folder / "tilewright", TILEWRIGHT.replace(tune, f"{given}\n{tune}"))
        self.run_gpu("--only", "1LUT")
        (name,) = self.rows()
        self.assertEqual(self.contenders(name)["ours, tuned"]["time_us"], 50.0)

    def test_a_machine_without_the_device_is_told_so(self):
        done = self.run_gpu("--device", "1", status=3)
        self.assertIn("there is no cuda:1 on this machine; `tilewright devices` lists: cpu, cuda:0", done.stderr)

    def test_tuned_kernels_under_the_sanitizer(self):
        self.run_gpu("--only", "gemm_1024")
        executable(self.folder / "bin/compute-sanitizer", SANITIZER)
        done = self.run_gpu("--sanitize", status=1, path=str(self.folder / "bin"))
        self.assertIn("| gemm_1024 | memcheck | clean | shortened |", done.stdout)
        self.assertIn("| gemm_1024 | racecheck | 3 hazards displayed | shortened |", done.stdout)
        self.assertEqual(len(json.loads(self.results.read_text())["sanitizer"]), 2)
        self.assertIn("gemm_1024", self.rows())


class Verdicts(unittest.TestCase):
    def test_what_the_tools_say(self):
        self.assertEqual(sanitizer.verdict(0, "========= ERROR SUMMARY: 0 errors\n"), "clean")
        self.assertEqual(sanitizer.verdict(99, "========= ERROR SUMMARY: 12 errors\n"), "12 errors")
        refused = "========= COMPUTE-SANITIZER\nerror: no such loop\n========= ERROR SUMMARY: 0 errors\n"
        self.assertEqual(sanitizer.verdict(1, refused), "ended with status 1: error: no such loop")
        self.assertEqual(sanitizer.verdict(None, "took over 120 s"), "took over 120 s")
        self.assertIn("status 255", sanitizer.verdict(255, "Device not supported\n"))

    def test_only_batches_and_reductions_are_shortened(self):
        self.assertEqual(sanitizer.shortened(GPU.named("gemm_4096")), {"M": 4096, "K": 256, "N": 4096})
        self.assertEqual(sanitizer.shortened(GPU.named("gemm_128x256x32"))["K"], 32)


class Requirements(unittest.TestCase):
    def made(self, name: str, tuned: float, default: float, **peers: float) -> Row:
        work = GPU.named(name)
        times = {"ours, tuned": tuned, "ours, default": default} | peers
        records = {who: Record(who, "median_us", bursts=[{"median_us": time}]) for who, time in times.items()}
        return Row(work, None, records, Tuning(10.0, 100, {}, []))

    def test_each_and_mean_and_default(self):
        rows = [
            self.made("conv2d_yolo_c1", 10.0, 99.0, cudnn=40.0),
            self.made("conv2d_yolo_c2", 10.0, 110.0, cudnn=8.0, native=5.0),
        ]
        lines = gpu_table.requirements(rows, GPU)
        self.assertIn("| yolo: each, of cudnn | 2 of 2 | 0.80 at least (conv2d_yolo_c2) | 0.90 | no |", lines)
        self.assertIn("| yolo: geometric mean, of cudnn | 2 of 2 | 1.79 | 1.80 | no |", lines)
        self.assertIn("| default schedule, times as long as tuned | 2 of 2 | 11.0 at most (conv2d_yolo_c2) | 10.0 | no |", lines)
        self.assertIn("| candidates a second | 2 of 2 | 10.0 (10.0 at least, conv2d_yolo_c1) | 15.0 | no |", lines)

    def test_the_best_of_several_peers_counts(self):
        row = self.made("conv1d_C256_K512_784_k9s1", 10.0, 20.0, cudnn=40.0, native=30.0)
        line = "| neglected: geometric mean, of cudnn or native | 1 of 1 | 3.00 | 2.00 | yes |"
        self.assertIn(line, gpu_table.requirements([row], GPU))


class Workloads(unittest.TestCase):
    def test_the_families_are_whole(self):
        counts = {family: len(GPU.selected([family])) for family in GPU.headings}
        self.assertEqual(counts, {"gemm": 6, "small": 4, "yolo": 15, "neglected": 14, "layers": 3})
        self.assertEqual(len({work.name for work in GPU.workloads}), len(GPU.workloads))

    def test_operations_of_known_shapes(self):
        self.assertEqual({work.operator for work in GPU.workloads} - set(COUNTS), set())
        expected = {
            "gemm_1024": 2.147483648,
            "bmm_500x26x72x26": 0.048672,
            "conv2d_yolo_c14": 0.924844032,
            "group_conv2d_G32_C4_K4_56x56_k3s1_b32": 0.859963392,
            "depthwise_conv2d_C32_M1_112x112_k3s1": 0.007225344,
            "dilated_conv2d_C64_K128_56x56_k3s1": 0.462422016,
            "conv3d_C64_K64_16x56x56_k3s1": 11.098128384,
            "conv_transpose2d_C256_K128_28x28_k4s2": 0.822083584,
            "mlp3_128x128x64x32x2": 0.002637824,
        }
        for name, gflop in expected.items():
            work = GPU.named(name)
            self.assertAlmostEqual(operations(work.operator, work.sizes) / 1e9, gflop, msg=name)

    def test_every_row_has_somebody_to_be_compared_with(self):
        for work in GPU.workloads:
            self.assertTrue(work.deciding(Way.TUNED), work.name)

    @unittest.skipUnless("TILEWRIGHT" in os.environ, "TILEWRIGHT does not name the command")
    def test_the_checker_accepts_every_program_at_its_sizes(self):
        command = os.path.abspath(os.environ["TILEWRIGHT"])
        for work in GPU.workloads:
            for sizes in (work.sizes, work.compared_sizes(), sanitizer.shortened(work)):
                arguments = program_arguments(work, sizes)
                done = subprocess.run([command, "check", *arguments], cwd=ROOT, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, f"{work.name}: {done.stderr}")


class Timing(unittest.TestCase):
    def test_samples_and_their_spread(self):
        times = iter(range(1000000))
        found = gpu_worker.spread(gpu_worker.samples(lambda: float(next(times)), 0.0))
        self.assertEqual(found["calls"], gpu_worker.FEWEST_CALLS)
        self.assertLess(found["p10_us"], found["median_us"])
        self.assertLess(found["median_us"], found["p90_us"])


@unittest.skipUnless(torch, "there is no PyTorch here")
class Peers(unittest.TestCase):
    """On the processor, at small sizes: the functions are those of the reference, whatever they run on."""

    SMALL = {"C": 6, "K": 4, "H": 9, "W": 8, "D": 5, "L": 20, "M": 7, "E": 30, "E1": 30, "E2": 20, "B": 4, "N": 5, "G": 3}

    def setUp(self):
        from peers import on_gpu

        self.on_gpu = on_gpu
        on_gpu.single_precision()

    def expect_same(self, peer: str):
        from references import comparison

        for work in GPU.workloads:
            build = self.on_gpu.PEERS[peer].get(work.operator)
            if peer not in work.all_peers() or build is None:
                continue
            sizes = {name: min(size, self.SMALL.get(name, size)) for name, size in work.sizes.items()}
            given = comparison.inputs(work.operator, sizes)
            with self.on_gpu.settings(peer):
                kernel = build({name: torch.from_numpy(array) for name, array in given.items()}, sizes)
                kernel.run()
                error = comparison.error(work.operator, sizes, given, kernel.output())
            self.assertLess(error, 1e-5, f"{peer}: {work.name}")

    def test_libraries_compute_what_the_reference_does(self):
        for peer in ("cublas", "native", "eager", "eager_indexed"):
            self.expect_same(peer)

    def test_cudnn_is_asked_for_the_same(self):
        """cuDNN needs a GPU; PyTorch's own convolutions, asked in its words, stand in for it."""

        def convolution(x, weight, padding, stride, dilation, groups, **_):
            return torch.convolution(x, weight, None, stride, padding, dilation, False, [0] * len(stride), groups)

        def transposed(x, weight, padding, output_padding, stride, dilation, groups, **_):
            return torch.convolution(x, weight, None, stride, padding, dilation, True, output_padding, groups)

        with unittest.mock.patch.multiple(torch, cudnn_convolution=convolution, cudnn_convolution_transpose=transposed):
            self.expect_same("cudnn")

    def test_every_row_is_served_by_its_peers(self):
        for work in GPU.workloads:
            for peer in work.all_peers():
                self.assertIn(work.operator, self.on_gpu.PEERS[peer], work.name)


if __name__ == "__main__":
    unittest.main()
