"""What is measured: operators at fixed sizes, their programs and schedules, their peers, and the ratios aimed at.

Plain data, without imports from outside the standard library: the harness and the peers' workers both read it.
`operator` is the key that reference.py and the modules in peers/ know the work by; `sizes` are the program's own names.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """Speed relative to the best deciding peer, at least; 1.0 is as fast."""

    hand: float
    default: float


@dataclass(frozen=True)
class Workload:
    name: str
    operator: str
    title: str
    program: str  # FILE:NAME, relative to the repository root
    sizes: dict[str, int]
    schedule: str  # the hand-written one, relative to the repository root
    peers: tuple[str, ...]  # the fastest of these is what the ratios are taken to
    informative: tuple[str, ...]  # measured and shown, but not compared with
    one_thread: Target
    many_threads: Target

    def target(self, threads: int) -> Target:
        return self.one_thread if threads == 1 else self.many_threads


def gemm(m: int, n: int, k: int) -> Workload:
    return Workload(
        name=f"gemm_{m}",
        operator="gemm",
        title=f"GEMM {m}x{n}x{k}",
        program="examples/flextensor/gemm.tw:gemm",
        sizes={"M": m, "K": k, "N": n},
        schedule=f"schedules/gemm_{m}.sched",
        peers=("mkl",),
        informative=("mkl_packed", "openblas", "pytorch", "onnxruntime", "openvino", "jax"),
        one_thread=Target(hand=0.93, default=0.6),
        many_threads=Target(hand=0.90, default=0.5),
    )


def conv2d(layer: str, c: int, image: int, k: int) -> Workload:
    """A 3x3 convolution with stride 1 and padding 1, batch 1, NCHW."""
    target = Target(hand=0.85, default=0.4)
    return Workload(
        name=f"conv2d_{layer}",
        operator="conv2d",
        title=f"convolution {layer.replace('_', ' ')}: {c}, {image}x{image} → {k}, 3x3",
        program="examples/flextensor/conv2d.tw:conv2d",
        sizes={"N": 1, "C": c, "H": image, "W": image, "K": k, "KH": 3, "KW": 3, "stride": 1, "pad": 1},
        schedule=f"schedules/conv2d_{layer}.sched",
        peers=("pytorch", "onnxruntime", "openvino"),
        informative=("jax",),
        one_thread=target,
        many_threads=target,
    )


NO_SLOWER = Target(hand=1.0, default=0.7)
FRAMEWORKS = ("pytorch", "onnxruntime", "openvino", "jax")


def depthwise(c: int, image: int) -> Workload:
    """A 3x3 depthwise convolution with stride 1 and padding 1, batch 1, one filter a channel, NCHW."""
    return Workload(
        name=f"depthwise_{c}x{image}x{image}",
        operator="depthwise_conv2d",
        title=f"depthwise 3x3: {c}, {image}x{image}",
        program="examples/flextensor/depthwise_conv2d.tw:depthwise_conv2d",
        sizes={"N": 1, "C": c, "H": image, "W": image, "M": 1, "KH": 3, "KW": 3, "stride": 1, "pad": 1},
        schedule="schedules/depthwise_3x3.sched",
        peers=FRAMEWORKS,
        informative=(),
        one_thread=NO_SLOWER,
        many_threads=NO_SLOWER,
    )


def rows(operator: str, title: str, n: int, d: int) -> Workload:
    """An operator over the last axis of a matrix: softmax or layer normalisation."""
    return Workload(
        name=f"{operator}_{n}x{d}",
        operator=operator,
        title=f"{title} {n}x{d}",
        program=f"examples/benchmarks/{operator}.tw:{operator}",
        sizes={"N": n, "D": d},
        schedule=f"schedules/{operator}.sched",
        peers=FRAMEWORKS,
        informative=(),
        one_thread=NO_SLOWER,
        many_threads=NO_SLOWER,
    )


def lookup(b: int, d: int, l: int, e: int) -> Workload:
    return Workload(
        name="1LUT",
        operator="1LUT",
        title=f"1LUT B{b} D{d} L{l} E{e}",
        program="examples/benchmarks/1LUT.tw:1LUT",
        sizes={"B": b, "D": d, "L": l, "E": e},
        schedule="schedules/1LUT.sched",
        peers=FRAMEWORKS,
        informative=(),
        one_thread=NO_SLOWER,
        many_threads=NO_SLOWER,
    )


WORKLOADS = (
    gemm(1024, 1024, 1024),
    conv2d("yolo_c6", c=256, image=56, k=512),
    conv2d("yolo_c13", c=1024, image=14, k=1024),
    depthwise(c=32, image=112),  # the first of MobileNetV2
    depthwise(c=256, image=56),
    rows("softmax", "softmax", 1024, 1024),
    rows("softmax", "softmax", 128, 4096),
    rows("layer_norm", "layer norm", 1024, 1024),
    rows("layer_norm", "layer norm", 512, 768),  # one sequence of BERT base
    lookup(b=128, d=64, l=50, e=100_000),
)


def named(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)
