"""`tilewright` on a device, as a contender: as on the CPU, and its kernels counted."""

import subprocess

from contender import ROOT, Tilewright, program_arguments, schedule_file
from workload import Way

SHOW_SECONDS = 60
EVERY_CALL = "// Kernels of each call:"  # after the setup kernels, which run once


class GpuTilewright(Tilewright):
    def prepare(self):
        super().prepare()
        if count := self._kernels():
            self.about["kernels"] = count

    def _kernels(self) -> int:
        """How many kernels one call launches at least: those of its CUDA text; 0 if that cannot be had."""
        schedule = ["--schedule", str(schedule_file(self._source))] if self._way is Way.TUNED else []
        command = [str(self._command), "show", *program_arguments(self._workload), "--stage", "cuda", *schedule]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SHOW_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            return 0
        return done.stdout.split(EVERY_CALL)[-1].count("__global__") if done.returncode == 0 else 0
