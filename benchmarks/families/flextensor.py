"""FlexTensor's twelve operators, batch 1, at three shapes each from its configurations: an early, a middle and a late row.

The 2-D convolutions are of ResNet, for the rows of YOLO are a family of their own. One deciding peer, and one goal for all.
"""

from dataclasses import replace

from workload import Goal, Workload, without_search

GOAL = Goal(family="flextensor", peers=("pytorch",), ratio=1.2)
FRAMEWORKS = ("pytorch", "onnxruntime", "openvino", "jax")

Sizes = dict[str, int]


def workload(operator: str, shape: str, sizes: Sizes) -> Workload:
    return Workload(
        name=f"{operator}_{shape}",
        family="flextensor",
        operator=operator,
        title=f"{operator.replace('_', ' ')} {shape.replace('_', ' ')}",
        program=f"examples/flextensor/{operator}.tw:{operator}",
        sizes=sizes,
        peers=("pytorch",),
    )


def gemv(size: int) -> Workload:
    return workload("gemv", str(size), {"M": size, "K": size})


def gemm(m: int, k: int, n: int) -> Workload:
    return workload("gemm", f"{m}x{n}x{k}", {"M": m, "K": k, "N": n})


def bilinear(n: int, k: int, l: int, m: int) -> Workload:
    return workload("bilinear", f"{n}x{k}x{l}x{m}", {"N": n, "M": m, "K": k, "L": l})


def image(axes: str, extents: tuple[int, ...], kernel: int, stride: int, pad: int) -> Sizes:
    """The sizes that all convolutions have: of the image, of a kernel as long in each axis, stride and padding."""
    window = {f"K{axis}": kernel for axis in axes}
    return dict(zip(axes, extents, strict=True)) | window | {"stride": stride, "pad": pad}


def convolution(operator: str, channels: Sizes, axes: str, extents: tuple[int, ...], window: tuple[int, int, int]) -> Workload:
    """`window` is the kernel's length, the stride and the padding."""
    kernel, stride, pad = window
    planes = "_".join(f"{name}{size}" for name, size in channels.items() if name != "dilation")
    shape = f"{planes}_{'x'.join(map(str, extents))}_k{kernel}s{stride}"
    return workload(operator, shape, {"N": 1} | channels | image(axes, extents, kernel, stride, pad))


def conv1d(operator: str, c: int, length: int, k: int, kernel: int, pad: int) -> Workload:
    return convolution(operator, {"C": c, "K": k}, "L", (length,), (kernel, 1, pad))


def conv2d(operator: str, c: int, size: int, k: int, *window: int) -> Workload:
    return convolution(operator, {"C": c, "K": k}, "HW", (size, size), window)


def conv3d(operator: str, c: int, depth: int, size: int, k: int, stride: int) -> Workload:
    return convolution(operator, {"C": c, "K": k}, "DHW", (depth, size, size), (3, stride, 1))


def grouped(c: int, size: int, k: int, groups: int = 16) -> Workload:
    channels = {"G": groups, "C": c // groups, "K": k // groups}
    return convolution("group_conv2d", channels, "HW", (size, size), (3, 1, 1))


def depthwise(c: int, size: int, multiplier: int, stride: int) -> Workload:
    return convolution("depthwise_conv2d", {"C": c, "M": multiplier}, "HW", (size, size), (3, stride, 1))


def depthwise_by_hand(c: int, size: int) -> Workload:
    """One filter a channel, stride 1: what there is a schedule for."""
    work = depthwise(c, size, multiplier=1, stride=1)
    return replace(work, schedule="schedules/depthwise_3x3.sched", targets=without_search(1.0, 0.7, FRAMEWORKS))


def dilated(c: int, size: int, k: int) -> Workload:
    return convolution("dilated_conv2d", {"C": c, "K": k, "dilation": 2}, "HW", (size, size), (3, 1, 1))


WORKLOADS = (
    gemv(256),
    gemv(1024),
    gemv(4096),
    gemm(64, 64, 64),
    gemm(256, 256, 256),
    gemm(m=1024, k=256, n=1024),
    bilinear(32, 1024, 1024, 32),
    bilinear(128, 256, 512, 64),
    bilinear(512, 64, 128, 256),
    conv1d("conv1d", 192, 3136, 128, kernel=1, pad=0),
    conv1d("conv1d", 256, 784, 512, kernel=9, pad=1),
    conv1d("conv1d", 1024, 49, 1024, kernel=9, pad=1),
    conv1d("conv_transpose1d", 192, 3136, 128, kernel=1, pad=0),
    conv1d("conv_transpose1d", 256, 784, 512, kernel=9, pad=1),
    conv1d("conv_transpose1d", 1024, 49, 1024, kernel=9, pad=1),
    conv2d("conv2d", 64, 56, 64, 3, 1, 1),
    conv2d("conv2d", 128, 28, 128, 3, 1, 1),
    conv2d("conv2d", 512, 7, 512, 3, 1, 1),
    conv2d("conv_transpose2d", 1024, 28, 512, 2, 2, 0),  # U-Net
    conv2d("conv_transpose2d", 1024, 8, 512, 4, 2, 1),  # Shift-Net
    conv2d("conv_transpose2d", 256, 64, 64, 4, 2, 1),
    conv3d("conv3d", 64, 8, 28, 64, stride=1),
    conv3d("conv3d", 128, 4, 14, 128, stride=1),
    conv3d("conv3d", 256, 2, 7, 256, stride=1),
    conv3d("conv_transpose3d", 64, 8, 28, 64, stride=1),
    conv3d("conv_transpose3d", 128, 4, 14, 256, stride=2),
    conv3d("conv_transpose3d", 256, 2, 7, 256, stride=1),
    grouped(64, 112, 192),
    grouped(256, 28, 512),
    grouped(1024, 7, 1024),
    depthwise_by_hand(32, 112),
    depthwise(24, 56, multiplier=6, stride=2),
    depthwise(160, 7, multiplier=6, stride=1),
    dilated(64, 112, 192),
    dilated(256, 28, 512),
    dilated(1024, 7, 1024),
)
