"""Two operators that PyTorch does not have as one call, beside what one writes in PyTorch instead.

- swiglu: the gated activation of a transformer whose two halves are clamped first, as large trained models need it.
- add_norm: the residual is added and the sum normalised by its root mean square; both are wanted afterwards.

Both are bound by memory: PyTorch goes through it, and allocates some, for each operation; Tilewright does so once or
twice in all. The PyTorch side is plain eager code, not torch.compile, with as many threads; the two take turns. Run it
on a machine that does nothing else: other work slows the side down more whose threads wait for each other more often.

    python custom_operator.py
"""

import statistics
import sys
import time

import torch

import tilewright as tw

ops = tw.define("""
    # The columns of h are the gate and then the value; their number C is even.
    def swiglu(float(N, C) h, float alpha, float limit) -> (y) {
      y(n, d) = gate * sigmoid(alpha * gate) * (1 + value)
        where d in 0:C/2,
              gate = min(h(n, d), limit),
              value = clamp(h(n, d + C/2), -limit, limit)
    }

    def add_norm(float(N, D) x, float(N, D) residual, float(D) weight, float eps) -> (total, y) {
      total(n, d) = x(n, d) + residual(n, d)
      squares(n) +=! total(n, d) * total(n, d)
      y(n, d) = total(n, d) * rsqrt(squares(n) / D + eps) * weight(d)
    }
""")


def torch_swiglu(h, alpha, limit):
    gate, value = h.chunk(2, dim=1)
    gate = gate.clamp(max=limit)
    return gate * torch.sigmoid(alpha * gate) * (1 + value.clamp(-limit, limit))


def torch_add_norm(x, residual, weight, eps):
    total = x + residual
    return total, torch.nn.functional.rms_norm(total, weight.shape, weight, eps)


def check(ours, theirs, inputs):
    """Ends the program if the two disagree by more than rounding."""
    try:
        torch.testing.assert_close(ours(*inputs), theirs(*inputs))
    except AssertionError as difference:
        sys.exit(f"{ours.__name__} is not what PyTorch computes: {difference}")


def once(call, inputs):
    start = time.perf_counter()
    call(*inputs)
    return time.perf_counter() - start


def measure(calls, inputs, turns=15, repeats=5):
    """The times of each call. They take turns, so that slow changes of the machine touch all alike.

    The first call of a turn does not count: the threads of the other library may still be awake.
    """
    times = [[] for _ in calls]
    for _ in range(turns):
        for call, seen in zip(calls, times):
            once(call, inputs)
            seen += [once(call, inputs) for _ in range(repeats)]
    return times


def main():
    torch.set_num_threads(tw.get_threads())
    torch.manual_seed(0)
    rows, width = 1024, 2048
    cases = [
        (ops.swiglu, torch_swiglu, (4 * torch.randn(rows, 2 * width), 1.702, 7.0)),
        (ops.add_norm, torch_add_norm, (torch.randn(rows, width), torch.randn(rows, width), torch.randn(width), 1e-5)),
    ]

    print(f"{rows} rows of {width} float32 numbers, {tw.get_threads()} threads")
    print(f"{'operator':<10} {'library':<10} {'median':>11} {'fastest':>11}")
    for ours, theirs, inputs in cases:
        check(ours, theirs, inputs)
        for library, seen in zip(["tilewright", "pytorch"], measure([ours, theirs], inputs)):
            median, fastest = statistics.median(seen) * 1e3, min(seen) * 1e3
            print(f"{ours.__name__:<10} {library:<10} {median:>8.2f} ms {fastest:>8.2f} ms")


if __name__ == "__main__":
    main()
