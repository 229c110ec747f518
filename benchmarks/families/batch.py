"""Many small matrix products in one call."""

from workload import Target, Way, Workload

DECIDING = ("mkl",)


def batch(operator: str, title: str, sizes: dict[str, int]) -> Workload:
    shape = "x".join(str(size) for size in sizes.values())
    return Workload(
        name=f"{operator}_{shape}",
        family="batch",
        operator=operator,
        title=f"{title} {shape}",
        program=f"examples/benchmarks/{operator}.tw:{operator}",
        sizes=sizes,
        peers=DECIDING,
        informative=("onednn", "pytorch"),
        targets=(Target(Way.TUNED, 1.0, DECIDING),),
    )


def bmm(b: int, n: int, k: int, m: int) -> Workload:
    return batch("bmm", "batch matmul", {"B": b, "N": n, "K": k, "M": m})


WORKLOADS = (
    bmm(b=960, n=128, k=128, m=64),  # OpEvo's PNN
    # That of Tensor Comprehensions; the second operand is transposed.
    batch("tbmm", "transposed batch matmul", {"B": 500, "N": 26, "M": 72, "K": 26}),
)
