"""What is measured on a GPU: matrix products, the convolutions of YOLO, those that libraries neglect, and layers of networks.

The programs are those of the CPU's families; the shapes are of OpEvo, FlexTensor and Tensor Comprehensions, batch 1 where nothing
else is said. Single precision without tensor cores. The peers are those of peers/on_gpu.py.
"""

from dataclasses import replace

from families import batch, flextensor, gemm, layers, yolo
from families.flextensor import convolution
from suite import Suite
from workload import Goal, Target, Way, Workload

CUBLAS = ("cublas",)
CUDNN = ("cudnn",)
CONVOLVING = ("cudnn", "native")
GRAPHS = ("compiled_graphs",)


def measured(
    work: Workload, family: str, peers: tuple[str, ...], each: float | None = None, shown: tuple[str, ...] = ()
) -> Workload:
    """The same work in a family of the GPU; `each` is what every row of it aims at."""
    targets = (Target(Way.TUNED, each, peers),) if each else ()
    return replace(work, family=family, peers=peers, informative=shown, schedule=None, targets=targets, milestone=None)


def product(m: int, k: int, n: int) -> Workload:
    return measured(gemm.gemm(m=m, k=k, n=n), "gemm", CUBLAS, each=0.9)


def small(work: Workload) -> Workload:
    return measured(work, "small", CUBLAS)


def layer_of_yolo(work: Workload) -> Workload:
    return measured(work, "yolo", CUDNN, each=0.9, shown=("native",))


def grouped(size: int, image: int) -> Workload:
    """Of Tensor Comprehensions: 32 groups of as many channels as filters, batch 32, 3x3 without padding."""
    return convolution("group_conv2d", {"G": 32, "C": size, "K": size}, "HW", (image, image), (3, 1, 0))


def dilated(c: int, k: int, image: int) -> Workload:
    """As large as its image: the padding is the dilation."""
    return convolution("dilated_conv2d", {"C": c, "K": k, "dilation": 2}, "HW", (image, image), (3, 1, 2))


def batch_of(n: int, work: Workload) -> Workload:
    return replace(work, name=f"{work.name}_b{n}", title=f"{work.title}, batch {n}", sizes=work.sizes | {"N": n})


NEGLECTED = (
    batch_of(32, grouped(4, 56)),
    batch_of(32, grouped(8, 28)),
    batch_of(32, grouped(16, 14)),
    batch_of(32, grouped(32, 7)),
    flextensor.depthwise(32, 112, multiplier=1, stride=1),
    flextensor.depthwise(128, 56, multiplier=1, stride=1),
    flextensor.depthwise(512, 14, multiplier=1, stride=1),
    flextensor.depthwise(1024, 7, multiplier=1, stride=1),
    dilated(256, 256, 28),
    dilated(64, 128, 56),
    flextensor.conv1d("conv1d", 256, 784, 512, kernel=9, pad=1),
    flextensor.conv3d("conv3d", 64, 16, 56, 64, stride=1),
    flextensor.conv2d("conv_transpose2d", 256, 28, 128, 4, 2, 1),
    flextensor.conv2d("conv_transpose2d", 1024, 28, 512, 2, 2, 0),  # U-Net
)

ROWS = 10_000_000
FEWER_ROWS = 100_000  # of a table, to compare results without gigabytes of it in a file


def perceptron() -> Workload:
    work = layers.mlp3(b=128, n=128, o=64, p=32, q=2)
    return measured(work, "layers", ("eager", "compiled"), each=1.5, shown=GRAPHS)


def lookups() -> tuple[Workload, ...]:
    peers = ("eager", "eager_indexed", "compiled")
    one, two = (measured(work, "layers", peers, 1.5, GRAPHS) for work in layers.lookups(b=128, d=64, l=50, e=ROWS))
    return replace(one, smaller={"E": FEWER_ROWS}), replace(two, smaller={"E1": FEWER_ROWS, "E2": FEWER_ROWS})


GPU = Suite(
    workloads=(
        product(1024, 1024, 1024),
        product(2048, 2048, 2048),
        product(4096, 4096, 4096),
        product(m=512, k=1024, n=1024),
        product(m=512, k=1024, n=4096),
        product(m=512, k=4096, n=1024),
        small(gemm.gemm(m=128, k=32, n=256)),
        small(gemm.gemm(m=128, k=1024, n=1024)),
        small(batch.bmm(b=500, n=26, k=72, m=26)),
        small(batch.bmm(b=960, n=128, k=128, m=64)),
        *map(layer_of_yolo, yolo.WORKLOADS),
        *(measured(work, "neglected", CONVOLVING) for work in NEGLECTED),
        perceptron(),
        *lookups(),
    ),
    goals=(
        Goal("gemm", CUBLAS, 1.0),
        Goal("small", CUBLAS, 1.2),
        Goal("yolo", CUDNN, 1.8),
        Goal("neglected", CONVOLVING, 2.0),
    ),
    headings={
        "gemm": "Matrix products",
        "small": "Small and odd matrix products",
        "yolo": "Convolutions of YOLO",
        "neglected": "Group, depthwise, dilated, 1-D, 3-D and transposed convolutions",
        "layers": "Layers of networks",
    },
)
