"""The fused programs as data, the tables, and the harness against stand-ins with known times; PyTorch is not needed.

With the command's path in TILEWRIGHT, every program is also checked.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import fused_table
from contender import ROOT
from fused import FUSED, KINDS
from fused.program import FOLDER, Tensor
from rounds import Record
from row import Row
from test_cpu import BENCHMARKS, executable

try:
    import numpy as np
except ImportError:
    np = None

FUNCTION = re.compile(r"^def (\w+)\((?:.|\n)*?^\}", re.MULTILINE)
ASSIGNMENT = re.compile(r"^ +[\w(][^=\n]*?(?:[+*]|min|max)?=", re.MULTILINE)

# Ours takes 50 µs, and is wrong for mse.
TILEWRIGHT = f"""#!{sys.executable}
import json, sys
arguments = sys.argv[1:]
def after(option):
    return arguments[arguments.index(option) + 1]
if arguments[0] == "--version":
    print("tilewright 1.2.3")
    sys.exit()
if arguments[0] == "devices":
    print(json.dumps({{"target": "cuda:0", "device": "a GPU"}}))
    sys.exit()
if arguments[0] == "show":
    print('extern "C" __global__ void k() {{}}')
    sys.exit()
place = {{"target": after("--target")}} if "--target" in arguments else {{"threads": int(after("--threads"))}}
assert place in ({{"target": "cuda:0"}}, {{"threads": 1}}), arguments
assert "x=/inputs/x.npy" in arguments, arguments
if "softmax_temperature" in arguments[1]:
    assert "temperature=0.7" in arguments, arguments
if arguments[0] == "run":
    after("--out")
    sys.exit()
assert arguments[0] == "bench", arguments
print(json.dumps(place | {{"schedule_source": "default", "median_us": 50.0, "p10_us": 50.0}}))
"""

# Eager takes 100 µs, compiled 40.
PYTHON = f"""#!{sys.executable}
import json, sys
script, target, threads = sys.argv[1:]
assert script.endswith("fused_worker.py") and (target, threads) in (("cpu", "1"), ("cuda:0", "0")), sys.argv
def say(message):
    print(json.dumps(message), flush=True)
say({{"ready": {{"torch": "2.0"}}}})
for line in sys.stdin:
    match json.loads(line):
        case {{"write": name, "folder": folder}}:
            say({{"files": {{"x": "/inputs/x.npy"}}}})
        case {{"prepare": peer}}:
            say({{"ready": {{"version": "torch 2.0", "error": 0.0}}}})
        case {{"compare": name}}:
            say({{"unavailable": "wrong result: off by 1"}} if name.startswith("mse") else {{"ready": {{"error": 0.0}}}})
        case {{"measure": peer}}:
            say({{"median_us": {{"eager": 100.0, "compiled": 40.0}}[peer], "p10_us": 40.0}})
        case _:
            say({{"forgotten": 1}})
"""


def bodies() -> dict[str, str]:
    """The text of every function, by its name."""
    return {found[1]: found[0] for kind in KINDS for found in FUNCTION.finditer((FOLDER / f"{kind.name}.tw").read_text())}


class Programs(unittest.TestCase):
    def test_names_are_unique_and_every_function_is_measured(self):
        self.assertEqual(len({work.name for work in FUSED.workloads}), len(FUSED.workloads))
        self.assertEqual({work.operator for work in FUSED.workloads}, set(bodies()))
        self.assertGreaterEqual(len(bodies()), 60)

    def test_every_program_has_two_to_eight_statements(self):
        for name, body in bodies().items():
            text = re.sub(r"\bwhere\b.*|#.*|requires.*", "", body.partition("{")[2])
            self.assertIn(len(ASSIGNMENT.findall(text)), range(2, 9), f"{name}: {ASSIGNMENT.findall(text)}")

    def test_every_input_has_a_shape_and_numbers(self):
        for work in FUSED.workloads:
            for tensor in work.inputs():
                self.assertTrue(work.draw(tensor), f"{work.name}: {tensor.name}")
            self.assertTrue(work.results(), work.name)
            self.assertLessEqual(set(work.draws), {tensor.name for tensor in work.inputs()}, work.name)

    def test_signatures_say_what_the_inputs_are(self):
        self.assertEqual(
            FUSED.named("quantise_rows_4096x1024").inputs() + FUSED.named("int8_product_256x512x1024").inputs()[:1],
            [Tensor("x", "float", (4096, 1024)), Tensor("x", "int8", (256, 512))],
        )
        self.assertEqual(FUSED.named("quantise_rows_4096x1024").results(), ["q", "scale"])

    def test_results_that_are_updated_in_place_are_inputs(self):
        adam = FUSED.named("adam_1000000")
        self.assertEqual([tensor.name for tensor in adam.inputs()], ["gradient", "p", "m", "v"])
        self.assertEqual(adam.results(), ["p", "m", "v"])

    def test_scalars_are_no_tensors(self):
        work = FUSED.named("softmax_temperature_4096x1024")
        self.assertEqual([tensor.name for tensor in work.inputs()], ["x"])

    @unittest.skipUnless("TILEWRIGHT" in os.environ, "TILEWRIGHT does not name the command")
    def test_the_checker_accepts_every_program(self):
        command = [os.path.abspath(os.environ["TILEWRIGHT"]), "check"]
        files = sorted(str(path) for path in FOLDER.glob("*.tw"))
        done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("warning", done.stderr)


@unittest.skipUnless(np, "there is no NumPy here")
class Data(unittest.TestCase):
    def test_inputs_have_the_shapes_and_bounds_of_the_program(self):
        from fused import data

        arrays = data.drawn(FUSED.named("factorisation_100000x20000x32x8192"))
        self.assertEqual({name: array.shape for name, array in arrays.items()}["items"], (20_000, 32))
        self.assertEqual(arrays["item"].dtype, np.int64)
        self.assertLess(arrays["item"].max(), 20_000)
        again = data.drawn(FUSED.named("factorisation_100000x20000x32x8192"))
        self.assertTrue(all(np.array_equal(array, again[name]) for name, array in arrays.items()))

    def test_errors_are_relative_to_the_largest_element(self):
        from fused import data

        expected = np.array([1.0, 100.0])
        self.assertAlmostEqual(data.error(np.array([1.1, 100.0]), expected, 0.01, False), 0.001)
        for wrong in ([1.1, 90.0], [1.0, np.nan]):
            with self.assertRaisesRegex(ArithmeticError, "wrong result"):
                data.error(np.array(wrong), expected, 0.01, False)
        with self.assertRaisesRegex(ArithmeticError, "shape"):
            data.error(np.array([1.0]), expected, 0.01, False)

    def test_few_elements_may_go_to_the_next_step(self):
        from fused import data

        expected = np.arange(2000)
        found = expected.copy()
        found[7] += 1
        self.assertGreater(data.error(found, expected, 0.0, False), 0)
        with self.assertRaisesRegex(ArithmeticError, "wrong result"):
            data.error(found[:100], expected[:100], 0.0, False)


class Tables(unittest.TestCase):
    def made(self, name: str, ours: float, eager: float, compiled: float) -> Row:
        times = {"ours, default": ours, "eager": eager, "compiled": compiled}
        records = {who: Record(who, "median_us", bursts=[{"median_us": time}]) for who, time in times.items()}
        return Row(FUSED.named(name), 2, records)

    def test_the_better_peer_counts_and_low_ratios_are_marked(self):
        rows = [self.made("mse_77x255", 100.0, 400.0, 800.0), self.made("softmax_1000x77", 200.0, 400.0, 50.0)]
        text = fused_table.report(rows, FUSED)
        self.assertIn("| mse 77x255 | 2 | 100 | 400 | 800 | 4.00 (4.00–4.00) |", text)
        self.assertIn("| softmax 1000x77 | 2 | 200 | 400 | 50.0 | **0.25 (0.25–0.25)** |", text)
        self.assertIn("| **all** | 2 | 2 rows | 1.00 |", text)
        self.assertIn("| softmax 1000x77 | 2 | 0.25 | compiled |", text)


class Harness(unittest.TestCase):
    def run_fused(self, *options: str) -> tuple[str, dict[str, dict]]:
        """What it prints, and the rows that it writes."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            executable(folder / "python", PYTHON)
            executable(folder / "tilewright", TILEWRIGHT)
            command = [sys.executable, BENCHMARKS / "fused.py", "--rounds", "2", "--json", folder / "results.json", *options]
            command += ["--python", folder / "python", "--tilewright", folder / "tilewright"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            results = json.loads((folder / "results.json").read_text())["results"]
        return done.stdout, {row["workload"]: row for row in results}

    def test_ours_beside_both_ways_of_pytorch(self):
        text, rows = self.run_fused("--threads", "1", "--only", "mse_77x255,softmax_temperature")
        ratio = rows["softmax_temperature_4096x1024"]["ratio"]["default"]
        self.assertEqual((ratio["peer"], ratio["median"]), ("compiled", 0.8))
        self.assertEqual(rows["mse_77x255"]["ratio"], {})
        self.assertIn("- ours, default: wrong result: off by 1 (mse_77x255 on 1)", text)
        self.assertIn("PyTorch 2.0; Tilewright 1.2.3", text)

    def test_on_a_gpu(self):
        text, rows = self.run_fused("--target", "cuda:0", "--only", "softmax_1000x77")
        self.assertEqual(rows["softmax_1000x77"]["threads"], None)
        self.assertIn("a GPU; ", text)
        self.assertIn("| softmax 1000x77 | GPU | 50.0 | 100 | 40.0 | 0.80 (0.80–0.80) |", text)


if __name__ == "__main__":
    unittest.main()
