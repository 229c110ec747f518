"""The pipelines on small images: Halide computes what ours does, and the harness measures both.

Skipped without the command's path in TILEWRIGHT, or where Halide is not installed.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from contender import BENCHMARKS, ENVIRONMENTS, ROOT, program_arguments
from cpu import peers_folder
from families.pipelines import EXPERT, PIPELINES
from pipelines_table import report
from rounds import Record
from row import Row

HALIDE = peers_folder() / ENVIRONMENTS[EXPERT] / "bin" / "python"


class Suites(unittest.TestCase):
    def test_every_pipeline_has_a_program_and_a_module_for_halide(self):
        for work in PIPELINES.workloads:
            file, _, function = work.program.partition(":")
            self.assertIn(f"def {function}(", (ROOT / file).read_text())
            self.assertTrue((BENCHMARKS / "halide_pipelines" / f"{work.name}.py").exists(), work.name)

    @unittest.skipUnless("TILEWRIGHT" in os.environ, "TILEWRIGHT does not name the command")
    def test_the_checker_accepts_every_program_at_its_sizes(self):
        command = os.path.abspath(os.environ["TILEWRIGHT"])
        for work in PIPELINES.workloads:
            done = subprocess.run([command, "check", *program_arguments(work)], cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{work.name}: {done.stderr}")


class Tables(unittest.TestCase):
    def test_ratios_and_their_mean(self):
        def made(name: str, expert: float, default: float) -> Row:
            times = {EXPERT: expert, "ours, default": default}
            records = {who: Record(who, "median_us", bursts=[{"median_us": time}]) for who, time in times.items()}
            return Row(PIPELINES.named(name), 2, records)

        text = report([made("harris", 4000.0, 2000.0), made("hist", 1000.0, 8000.0)])
        self.assertIn("| harris | 2 | 4.00 | 2.00 | 2.00 (2.00–2.00) |", text)
        self.assertIn("| geometric mean | 2 | - | 2 of 2 | 0.50 |", text)


@unittest.skipUnless("TILEWRIGHT" in os.environ, "TILEWRIGHT does not name the command")
@unittest.skipUnless(HALIDE.exists(), "Halide is not installed: `scripts/peers.sh --only halide` installs it")
class SmallImages(unittest.TestCase):
    def test_both_compute_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "results.json"
            done = subprocess.run(
                [sys.executable, BENCHMARKS / "pipelines.py", "--tiny", "--rounds", "1", "--seconds", "0.01", "--threads", "1"]
                + ["--tilewright", os.path.abspath(os.environ["TILEWRIGHT"]), "--bench-args", "--time 10ms --samples 1"]
                + ["--json", results],
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = json.loads(results.read_text())["results"]
        self.assertEqual(len(rows), len(PIPELINES.workloads))
        for row in rows:
            for contender in row["contenders"]:
                self.assertIsNone(contender["unavailable"], f"{row['workload']}: {contender['name']}")
            self.assertIn("default", row["ratio"])


if __name__ == "__main__":
    unittest.main()
