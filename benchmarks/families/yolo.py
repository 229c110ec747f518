"""The fifteen different convolutions of YOLO v1, batch 1, NCHW, as FlexTensor's evaluation numbers them."""

from workload import Goal, Target, Way, Workload, without_search

DECIDING = ("pytorch", "onnxruntime", "openvino")
GOAL = Goal(family="yolo", peers=("pytorch",), ratio=1.2)
TUNED = Target(Way.TUNED, 0.95, DECIDING)
BY_HAND = (6, 13)  # the layers that have a schedule

# Channels, image, filters, kernel, stride.
LAYERS = (
    (3, 448, 64, 7, 2),
    (64, 112, 192, 3, 1),
    (192, 56, 128, 1, 1),
    (128, 56, 256, 3, 1),
    (256, 56, 256, 1, 1),
    (256, 56, 512, 3, 1),
    (512, 28, 256, 1, 1),
    (256, 28, 512, 3, 1),
    (512, 28, 512, 1, 1),
    (512, 28, 1024, 3, 1),
    (1024, 14, 512, 1, 1),
    (512, 14, 1024, 3, 1),
    (1024, 14, 1024, 3, 1),
    (1024, 14, 1024, 3, 2),
    (1024, 7, 1024, 3, 1),
)


def layer(number: int, c: int, image: int, k: int, kernel: int, stride: int) -> Workload:
    by_hand = number in BY_HAND
    step = f" stride {stride}" if stride > 1 else ""
    return Workload(
        name=f"conv2d_yolo_c{number}",
        family="yolo",
        operator="conv2d",
        title=f"C{number}: {c}, {image}x{image} → {k}, {kernel}x{kernel}{step}",
        program="examples/flextensor/conv2d.tw:conv2d",
        sizes={
            "N": 1, "C": c, "H": image, "W": image, "K": k, "KH": kernel, "KW": kernel,
            "stride": stride, "pad": kernel // 2,
        },
        peers=DECIDING,
        informative=("jax",),
        schedule=f"schedules/conv2d_yolo_c{number}.sched" if by_hand else None,
        targets=(TUNED, *(without_search(0.85, 0.4, DECIDING) if by_hand else ())),
    )


WORKLOADS = tuple(layer(number, *shape) for number, shape in enumerate(LAYERS, start=1))
