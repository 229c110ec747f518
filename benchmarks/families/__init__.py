"""The workloads, one module a family, and gpu.py for those that are measured on a GPU."""

from families import batch, flextensor, gemm, layers, yolo
from suite import Suite

CPU = Suite(
    workloads=(
        *gemm.WORKLOADS,
        *batch.WORKLOADS,
        *yolo.WORKLOADS,
        *flextensor.WORKLOADS,
        *layers.WORKLOADS,
    ),
    goals=(yolo.GOAL, flextensor.GOAL),
    headings={
        "gemm": "Matrix products",
        "batch": "Batches of matrix products",
        "yolo": "Convolutions of YOLO",
        "flextensor": "FlexTensor's operators",
        "layers": "Layers of networks",
    },
)
