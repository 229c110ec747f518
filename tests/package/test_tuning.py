"""Searching from Python."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import assert_product, numbers

import tilewright as tw

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }"


def test_a_search_finds_keeps_and_uses(tmp_path):
    mm = tw.define(MM).mm
    A, B = numbers(64, 64), numbers(64, 64)
    found = mm.tune(A, B, trials=6, progress=False)
    assert found.trials == 6 and 0 < found.seconds <= found.default_seconds and found.speedup >= 1
    assert len(found.history) >= 2 and found.history[-1][3] <= found.history[0][3]
    assert "6 trials" in repr(found) and str(tmp_path) in found.kept
    assert mm.schedule == found.schedule
    assert_product(mm(A, B), A, B)
    [row] = tw.cache.list()
    assert row["program"].startswith("mm") and row["trials"] >= 7
    # Another program finds it, under other names too.
    other = tw.define("def f(float(P, Q) X, float(Q, R) Y) -> (Z) { Z(a, b) +=! X(a, c) * Y(c, b) }").f
    other(A, B)
    assert other.schedule == other.compile(A, B).schedule
    records = tmp_path / "records.pb"
    assert tw.cache.export(records) == tw.cache.clear() > 0
    assert tw.cache.list() == [] and tw.cache.load(records) > 0 and len(tw.cache.list()) == 1


def test_what_cannot_be_tuned_says_so():
    mm = tw.define(MM).mm
    A, B = numbers(8, 8), numbers(8, 8)
    with pytest.raises(ValueError, match="luck"):
        mm.tune(A, B, trials=1, strategy="luck", progress=False)
    for wrong in [{"seconds": -1}, {"trials": -1}, {"trials": 1, "seed": -1}]:
        with pytest.raises(ValueError, match="not negative"):
            mm.tune(A, B, progress=False, **wrong)
    with pytest.raises(tw.ProgramError, match="K is 8 from A, but 7 from B"):
        mm.tune(A, B[1:], trials=1, progress=False)


def test_a_cache_that_cannot_be_written_costs_the_records_only(tmp_path):
    tw.cache.use(tmp_path)
    found = tw.define(MM).mm.tune(numbers(8, 8), numbers(8, 8), trials=1, progress=False)
    assert "no records were stored" in found.kept
    with pytest.warns(UserWarning, match="the default schedule is used"):
        tw.define(MM).mm(numbers(8, 8), numbers(8, 8))


def test_others_run_meanwhile(lib):
    """The interpreter is not held by a search."""
    counted = []
    ended = threading.Event()

    def count():
        while not ended.is_set():
            counted.append(lib.add(numbers(4), numbers(4))[0])
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    try:
        tw.define(MM).mm.tune(numbers(32, 32), numbers(32, 32), trials=3, progress=False)
    finally:
        ended.set()
        other.join()
    assert len(counted) > 20


INTERRUPTED = f"""
import sys
import numpy as np, tilewright as tw
tw.cache.use(sys.argv[1])
mm = tw.define({MM!r}).mm
A = np.ones((64, 64), np.float32)
print("begun", flush=True)
found = mm.tune(A, A, seconds=60, progress=True)
print("found", found.seconds > 0, mm(A, A)[0, 0], flush=True)
"""


def test_ctrl_c_gives_the_best_so_far(tmp_path):
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "cache.sqlite")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begun\n"
        # The bar tells of the best as soon as something was measured, which takes seconds on a busy machine.
        told = b""
        while b"best" not in told:
            told += (more := os.read(process.stderr.fileno(), 4096))
            assert more, told
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        said, complained = process.communicate(timeout=60)
        assert time.monotonic() - asked < 20
    assert process.returncode == 0, complained
    assert said == b"found True 64.0\n"


def test_a_search_does_not_care_where_it_is_started(tmp_path):
    """What lies in the current folder, or says something when Python starts, is not the worker's business."""
    (tmp_path / "inspect.py").write_text("raise SystemExit('the wrong module')")
    (tmp_path / "sitecustomize.py").write_text("print('hello')")
    code = f"""
import numpy as np, os, sys
import tilewright as tw
os.chdir({str(tmp_path)!r})
os.environ["PYTHONPATH"] = {str(tmp_path)!r}
tw.cache.use("cache.sqlite")
A = np.ones((8, 8), np.float32)
print(tw.define({MM!r}).mm.tune(A, A, trials=2, progress=False).trials)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, "2\n"), ran.stderr
