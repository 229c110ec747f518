"""Matrix products: cubes, and the three of OpEvo's evaluation. Both operands change from call to call, so packing is timed."""

from dataclasses import replace

from workload import Milestone, Target, Way, Workload

DECIDING = ("mkl", "onednn")
TUNED = Target(Way.TUNED, 0.95, DECIDING)
INFORMATIVE = ("mkl_packed", "openblas", "pytorch", "onnxruntime", "openvino", "jax")


def gemm(m: int, n: int, k: int) -> Workload:
    cube = m == n == k
    return Workload(
        name=f"gemm_{m}" if cube else f"gemm_{m}x{n}x{k}",
        family="gemm",
        operator="gemm",
        title=f"GEMM {m}x{n}x{k}",
        program="examples/flextensor/gemm.tw:gemm",
        sizes={"M": m, "K": k, "N": n},
        peers=DECIDING,
        informative=INFORMATIVE,
        targets=(TUNED,),
    )


def gemm_1024() -> Workload:
    """The one with a schedule by hand, whose targets were set beside MKL alone."""
    work = gemm(1024, 1024, 1024)
    hand = Target(Way.HAND, 0.93, ("mkl",), many_threads=0.90)
    default = Target(Way.DEFAULT, 0.6, ("mkl",), many_threads=0.5)
    return replace(
        work,
        schedule="schedules/gemm_1024.sched",
        targets=(TUNED, hand, default),
        milestone=Milestone("mkl", 0.9),
    )


WORKLOADS = (
    gemm(512, 512, 512),
    gemm_1024(),
    gemm(2048, 2048, 2048),
    # OpEvo, section 4: N512 K1024 M1024, N512 K1024 M4096 and N512 K4096 M1024 in its names.
    gemm(m=512, k=1024, n=1024),
    gemm(m=512, k=1024, n=4096),
    gemm(m=512, k=4096, n=1024),
)
