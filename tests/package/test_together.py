"""Many threads, forked processes, and calls without end."""

import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import assert_product, numbers

import tilewright as tw


def test_eight_threads_call_at_once():
    mm = tw.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }").mm
    failures = []

    def call(seed):
        random = np.random.default_rng(seed)
        try:
            for _ in range(1000):
                rows = int(random.integers(1, 9))
                A, B = random.standard_normal((rows, 30), np.float32), random.standard_normal((30, 7), np.float32)
                assert_product(mm(A, B), A, B)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert "8 kernels" in repr(mm)


FORKED = """
import os, sys
import numpy as np, tilewright as tw
mm = tw.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }").mm
A = np.ones((300, 300), np.float32)
mm(A, A)
child = os.fork()
right = bool((mm(A, A) == 300).all())
if child == 0:
    os._exit(0 if right else 3)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) or (0 if right else 4))
"""


WITH_DEVICE = """
import os, sys
import numpy as np, tilewright as tw
add = tw.define("def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }").add
x = np.ones(8, np.float32)
if not any(device.target == "opencl:0" for device in tw.devices()):
    sys.exit(0)
add(x, x, target="opencl:0")
child = os.fork()
if child == 0:
    try:
        add(x, x, target="opencl:0")
    except tw.DeviceError as error:
        os._exit(0 if "spawn" in str(error) else 3)
    os._exit(4)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_does_not_wait_for_a_device():
    assert subprocess.run([sys.executable, "-c", WITH_DEVICE], timeout=60).returncode == 0


def test_a_forked_process_has_its_own_threads():
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=60).returncode == 0


def test_a_thread_with_a_small_stack_compiles():
    text = "def f(float(N) x) -> (y) { y(i) = " + "exp(" * 250 + "x(i)" + ")" * 250 + " }"
    failures = []

    def call():
        try:
            tw.define(text)(numbers(4))
        except BaseException as failure:
            failures.append(failure)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=call)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert failures == []


def resident():
    """Kilobytes of memory that this process has now."""
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * resource.getpagesize() // 1024


def growth(run, warm, times):
    for _ in range(warm):
        run()
    before = resident()
    for _ in range(times):
        run()
    return resident() - before


def test_calls_leak_nothing(lib):
    x = numbers(1000)
    kernel = lib.add.compile(x, x)

    def refused():
        with pytest.raises(TypeError):
            kernel(x, None)

    # 100,000 leaked results would be 400 MB, and as many leaked references at least 1.6.
    assert growth(lambda: kernel(x, x), 1000, 100_000) < 1000
    assert growth(lambda: lib.add(x[::2], x[::2]), 1000, 20_000) < 1000
    assert growth(lambda: lib.both(x), 1000, 20_000) < 1000
    assert growth(refused, 1000, 10_000) < 1000


def test_compilations_leak_little():
    """All that a kernel has goes with its function."""

    def compile():
        add = tw.define("def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }").add
        add(numbers(8), numbers(8))

    assert growth(compile, 50, 200) < 4000


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="there is no /proc")
def test_importing_is_quick_and_light():
    code = "import sys, tilewright; print('numpy' in sys.modules, 'torch' in sys.modules, 'tqdm' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
    assert said.split() == ["False", "False", "False"]
