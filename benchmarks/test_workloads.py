"""The workloads as data: programs that are there, peers that are known, and targets for who is measured.

With the command's path in TILEWRIGHT, every program is also checked at its sizes.
"""

import os
import subprocess
import unittest

from contender import ENVIRONMENTS, ROOT, program_arguments
from families import CPU
from workload import Way


class Workloads(unittest.TestCase):
    def test_names_are_unique(self):
        self.assertEqual(len({work.name for work in CPU.workloads}), len(CPU.workloads))

    def test_programs_and_schedules_exist(self):
        for work in CPU.workloads:
            file, _, function = work.program.partition(":")
            self.assertIn(f"def {function}(", (ROOT / file).read_text(), work.name)
            self.assertTrue(work.schedule is None or (ROOT / work.schedule).exists(), work.name)

    def test_peers_are_known(self):
        for work in CPU.workloads:
            self.assertLessEqual(set(work.all_peers()), set(ENVIRONMENTS), work.name)

    def test_every_family_has_a_heading_and_every_goal_a_measured_peer(self):
        self.assertEqual(list(CPU.headings), list(dict.fromkeys(work.family for work in CPU.workloads)))
        for goal in CPU.goals:
            for work in CPU.selected([goal.family]):
                self.assertLessEqual(set(goal.peers), set(work.all_peers()), work.name)

    def test_the_families_are_whole(self):
        counts = {family: len(CPU.selected([family])) for family in CPU.headings}
        self.assertEqual(counts, {"gemm": 6, "batch": 2, "yolo": 15, "flextensor": 36, "layers": 10})
        operators = [work.operator for work in CPU.selected(["flextensor"])]
        self.assertEqual({operators.count(operator) for operator in operators}, {3})

    def test_targets_by_threads(self):
        target = CPU.named("gemm_1024").target(Way.HAND)
        self.assertEqual((target.at(1), target.at(2)), (0.93, 0.90))

    def test_words_mean_families_operators_or_names(self):
        self.assertEqual(len(CPU.selected(["gemm"])), 6)
        self.assertEqual({work.operator for work in CPU.selected(["conv3d", "gemv_256"])}, {"conv3d", "gemv"})

    @unittest.skipUnless("TILEWRIGHT" in os.environ, "TILEWRIGHT does not name the command")
    def test_the_checker_accepts_every_program_at_its_sizes(self):
        command = os.path.abspath(os.environ["TILEWRIGHT"])
        for work in CPU.workloads:
            done = subprocess.run([command, "check", *program_arguments(work)], cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{work.name}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
