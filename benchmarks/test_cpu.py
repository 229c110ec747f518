"""The harness against stand-ins with known times: `python3 -m unittest discover benchmarks`.

A stand-in for `tilewright` answers `bench` as the real command does; a stand-in for the peers' Python speaks the worker's protocol.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from rounds import Record, fastest, ratio

BENCHMARKS = Path(__file__).resolve().parent

# `tune` finds something after 1.5 s; tuned takes 50 µs, by hand 100 and by default 200.
TILEWRIGHT = f"""#!{sys.executable}
import json, pathlib, sys
arguments = sys.argv[1:]
def after(option):
    return arguments[arguments.index(option) + 1]
assert arguments[1] == "examples/flextensor/gemm.tw:gemm", arguments
assert after("--sizes") == "M=1024,K=1024,N=1024", arguments
if arguments[0] == "tune":
    cache = pathlib.Path(after("--cache"))
    assert not cache.exists()
    cache.touch()
    for seconds, best in ((0.5, 200.0), (1.0, 200.0), (1.5, 50.0)):
        print(json.dumps({{"event": "trial", "trial": 0, "seconds": seconds, "best_us": best}}))
    print(json.dumps({{"event": "done", "seconds": 2.0, "trials": 8, "failures": {{"measured": 9}}}}))
    sys.exit()
assert arguments[0] == "bench", arguments
source = "file" if "--schedule" in arguments else "cache" if "--cache" in arguments else "default"
time = {{"file": 100.0, "cache": 50.0, "default": 200.0}}[source]
print(json.dumps({{"threads": int(after("--threads")), "schedule_source": source, "median_us": time, "p10_us": time / 2}}))
"""

CACHED = TILEWRIGHT.replace('else "default"', 'else "cache"')
FAILING = f"#!{sys.executable}\nimport sys\nsys.exit('error: no such size')\n"

# MKL takes 100 µs, then 120; OpenBLAS dies in its second burst; ONNX Runtime is missing; all else takes 150 µs.
PYTHON = f"""#!{sys.executable}
import json, sys
if sys.argv[1].endswith("result_check.py"):
    print(json.dumps({{"error": 1e-7}}))
    sys.exit()
peer = sys.argv[2]
if peer == "onnxruntime":
    print(json.dumps({{"unavailable": "No module named 'onnxruntime'"}}), flush=True)
    sys.exit()
print(json.dumps({{"ready": {{"version": peer + " 1", "error": 0.0}}}}), flush=True)
for burst, line in enumerate(sys.stdin):
    if peer == "openblas" and burst == 1:
        sys.exit("out of luck")
    time = 100.0 + 20 * burst if peer == "mkl" else 150.0
    print(json.dumps({{"median_us": time, "p10_us": time / 2}}), flush=True)
"""


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Statistics(unittest.TestCase):
    def record(self, name: str, *times: float) -> Record:
        return Record(name, "median_us", bursts=[{"median_us": time} for time in times])

    def test_ratios_are_taken_within_a_round(self):
        found = ratio(self.record("ours", 10, 100, 10), self.record("peer", 10, 200, 5))
        self.assertEqual((found.median, found.low, found.high), (1.0, 0.6, 1.8))

    def test_one_round_has_no_spread(self):
        found = ratio(self.record("ours", 10), self.record("peer", 20))
        self.assertEqual((found.median, found.low, found.high), (2.0, 2.0, 2.0))

    def test_the_fastest_is_by_median_and_available(self):
        broken = Record("broken", "median_us", unavailable="gone")
        self.assertEqual(fastest([self.record("a", 9, 3, 9), broken, self.record("b", 5, 5, 99)]).name, "b")
        self.assertIsNone(fastest([broken]))

    def test_no_ratio_without_both(self):
        self.assertIsNone(ratio(self.record("ours", 1), None))
        self.assertIsNone(ratio(Record("ours", "median_us", unavailable="gone"), self.record("peer", 1)))


class Harness(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def run_gemm(self, tilewright: str, *options: str) -> tuple[dict, dict[str, dict], str]:
        """The only result, its contenders by name, and the tables."""
        executable(self.folder / "venv/bin/python", PYTHON)  # and no venv-torch
        command = executable(self.folder / "tilewright", tilewright)
        results = self.folder / "results.json"
        done = subprocess.run(
            [sys.executable, BENCHMARKS / "cpu.py", "--only", "gemm_1024", "--threads", "1", "--rounds", "2"]
            + ["--peers", self.folder, "--tilewright", command, "--json", results, *options],
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        (result,) = json.loads(results.read_text())["results"]
        return result, {contender["name"]: contender for contender in result["contenders"]}, done.stdout

    def test_ratio_to_the_deciding_peer(self):
        result, contenders, tables = self.run_gemm(TILEWRIGHT, "--tune", "0")
        self.assertEqual(result["ratio"]["default"]["peer"], "mkl")
        self.assertAlmostEqual(result["ratio"]["default"]["median"], 0.55)
        self.assertAlmostEqual(result["ratio"]["default"]["low"], 0.51)
        self.assertNotIn("tuned", result["ratio"])
        self.assertEqual(contenders["mkl"]["time_us"], 110.0)
        self.assertEqual(contenders["mkl"]["about"]["version"], "mkl 1")
        self.assertEqual(contenders["ours, hand"]["about"]["error"], 1e-7)
        self.assertIn("| mkl 110 |", tables)
        self.assertIn("0.55 (0.51–0.59)", tables)

    def test_the_tuned_kernel_is_measured_beside_the_others(self):
        result, contenders, tables = self.run_gemm(TILEWRIGHT, "--tune", "1")
        self.assertEqual(contenders["ours, tuned"]["time_us"], 50.0)
        self.assertEqual(result["ratio"]["tuned"]["peer"], "mkl")
        self.assertTrue(result["ratio"]["tuned"]["met"])
        self.assertEqual(result["tuning"]["improvements"], [[0.5, 200.0], [1.5, 50.0]])
        self.assertIn("| 2.20 (2.04–2.36) | 0.95 | yes | 2 | 8 | 4.0 |", tables)
        self.assertIn("0.9 of the speed of mkl after 1.5 s of tuning", tables)

    def test_tuning_is_kept(self):
        kept = self.folder / "tuned"
        self.run_gemm(TILEWRIGHT, "--tune", "1", "--tune-cache", kept)
        self.run_gemm(TILEWRIGHT, "--tune", "1", "--tune-cache", kept, "--retune")
        without_tune = TILEWRIGHT.replace('if arguments[0] == "tune":', 'assert arguments[0] != "tune"\nif False:')
        result, contenders, _ = self.run_gemm(without_tune, "--tune", "1", "--tune-cache", kept)
        self.assertEqual(contenders["ours, tuned"]["time_us"], 50.0)
        self.assertEqual(result["tuning"]["trials"], 8)

    def test_a_resumed_run_keeps_its_rows(self):
        first, _, tables = self.run_gemm(TILEWRIGHT, "--tune", "1")
        again, _, resumed = self.run_gemm(FAILING, "--tune", "1", "--resume")
        self.assertEqual(first, again)
        self.assertEqual(tables.split("\n", 1)[1], resumed.split("\n", 1)[1])

    def test_tenth_percentiles(self):
        result, _, tables = self.run_gemm(TILEWRIGHT, "--tune", "0", "--statistic", "p10")
        self.assertAlmostEqual(result["ratio"]["default"]["median"], 0.55)
        self.assertIn("| mkl 55.0 |", tables)

    def test_missing_and_dying_peers_say_why(self):
        _, contenders, tables = self.run_gemm(TILEWRIGHT, "--tune", "0")
        self.assertIn("No module named 'onnxruntime'", contenders["onnxruntime"]["unavailable"])
        self.assertIn("scripts/peers.sh", contenders["pytorch"]["unavailable"])
        self.assertIn("out of luck", contenders["openblas"]["unavailable"])
        self.assertIn("- openblas: the worker ended with status 1: out of luck (all rows)", tables)

    def test_a_command_that_fails_says_why(self):
        result, contenders, _ = self.run_gemm(FAILING)
        self.assertIn("status 1: error: no such size", contenders["ours, default"]["unavailable"])
        self.assertIn("status 1: error: no such size", contenders["ours, tuned"]["unavailable"])
        self.assertEqual(result["ratio"], {})

    def test_a_tuned_schedule_does_not_pass_for_the_default(self):
        _, contenders, _ = self.run_gemm(CACHED, "--tune", "0")
        self.assertIn("from `cache`", contenders["ours, default"]["unavailable"])

    def test_what_is_unknown_is_refused(self):
        done = subprocess.run([sys.executable, BENCHMARKS / "cpu.py", "--only", "gem"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no family, operator or workload `gem`", done.stderr)


if __name__ == "__main__":
    unittest.main()
