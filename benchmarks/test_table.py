"""Rows with known times as tables, means and JSON."""

import json
import unittest

import progress
import row
import table
from contender import own_name
from families import CPU
from rounds import Record, geometric_mean
from row import Row
from tuning import Tuning
from workload import Way

SEARCH = Tuning(seconds=20.0, trials=50, failures={"measured": 51}, improvements=[(0.1, 90.0), (3.0, 10.0)])


def made(name: str, tuned: float, **peers: float) -> Row:
    """A row of one round; peers that are not named are missing."""
    work = CPU.named(name)
    times = {own_name(Way.TUNED): tuned, own_name(Way.DEFAULT): 2 * tuned} | peers
    records = {peer: Record(peer, "median_us", unavailable="not here") for peer in work.all_peers()}
    records |= {who: Record(who, "median_us", bursts=[{"median_us": time}]) for who, time in times.items()}
    return Row(work, 2, records, SEARCH)


class Tables(unittest.TestCase):
    def test_geometric_mean(self):
        self.assertAlmostEqual(geometric_mean([0.5, 2.0, 8.0]), 2.0)
        self.assertIsNone(geometric_mean([]))

    def test_a_goal_over_a_family(self):
        rows = [made("conv2d_yolo_c1", 100.0, pytorch=400.0, openvino=90.0), made("conv2d_yolo_c2", 100.0, pytorch=100.0)]
        means = table.means("yolo", rows, CPU.goals)
        self.assertIn("| pytorch, 2 rows | 2 | 2.00 | 1.20 | yes |", means)
        self.assertIn("| best peer, 2 rows | 2 | 0.95 | - | - |", means)
        self.assertIn("| 0.90 (0.90–0.90) | 0.95 | no | 20 | 50 | 2.5 |", table.tuned(rows))

    def test_a_goal_shows_every_operator(self):
        rows = [made("gemv_256", 10.0, pytorch=10.0), made("conv3d_C64_K64_8x28x28_k3s1", 10.0, pytorch=40.0)]
        means = table.means("flextensor", rows, CPU.goals)
        self.assertIn("| pytorch, 2 rows | 2 | 2.00 | 1.20 | yes |", means)
        self.assertIn("| pytorch, conv3d, 1 row | 2 | 4.00 | - | - |", means)

    def test_the_milestone_is_a_line_of_its_own(self):
        self.assertIn("0.9 of the speed of mkl after 3.0 s", table.milestones([made("gemm_1024", 10.0, mkl=10.0)]))
        self.assertIn("not reached", table.milestones([made("gemm_1024", 10.0, mkl=1.0)]))

    def test_reasons_are_shown_once(self):
        reasons = table.missing([made("gemv_256", 1.0), made("gemv_1024", 1.0)])
        self.assertEqual(reasons, "- pytorch: not here (all rows)")

    def test_a_row_survives_its_file(self):
        before = made("gemm_1024", 10.0, mkl=9.0)
        after = row.from_json(json.loads(json.dumps(row.to_json(before))), CPU)
        self.assertEqual(after, before)


class Estimates(unittest.TestCase):
    def test_what_is_left_follows_what_was(self):
        estimate = progress.Progress([10.0, 10.0, 20.0], began=0.0)
        self.assertEqual(estimate.seconds_left(now=5.0), 40.0)
        estimate.step()
        self.assertEqual(estimate.seconds_left(now=30.0), 90.0)

    def test_durations_in_words(self):
        words = [progress.duration(seconds) for seconds in (20, 600, 7200)]
        self.assertEqual(words, ["less than a minute", "about 10 min", "about 2.0 h"])


if __name__ == "__main__":
    unittest.main()
