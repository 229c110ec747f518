"""Image pipelines at the sizes of Halide's applications, compared with the expert schedules of these applications.

The program of each is examples/pipelines/NAME.tw, and what Halide runs is halide_pipelines/NAME.py.
"""

from dataclasses import dataclass, field

from suite import Suite
from workload import Workload

FAMILY = "pipelines"
EXPERT = "halide"
AUTOSCHEDULERS = ("halide_mullapudi", "halide_adams")


@dataclass(frozen=True)
class Pipeline(Workload):
    scalars: dict[str, float] = field(default_factory=dict)  # what the program takes beside its tensors and sizes
    tiny: dict[str, int] = field(default_factory=dict)  # the sizes of the tests, where they are not the pipeline's own

    def tiny_sizes(self) -> dict[str, int]:
        return self.sizes | self.tiny


def pipeline(name: str, sizes: dict[str, int], tiny: dict[str, int], **scalars: float) -> Pipeline:
    return Pipeline(
        name=name,
        family=FAMILY,
        operator=name,
        title=name,
        program=f"examples/pipelines/{name}.tw:{name}",
        sizes=sizes,
        peers=(EXPERT,),
        informative=AUTOSCHEDULERS,
        schedule=f"schedules/pipelines/{name}.cpu.sched",
        scalars=scalars,
        tiny=tiny,
    )


PICTURE = {"H": 2560, "W": 1536}
TINY = {"H": 80, "W": 128}

WORKLOADS = (
    pipeline("harris", PICTURE, TINY),
    pipeline("unsharp", PICTURE, TINY),
    pipeline("hist", PICTURE, TINY),
    pipeline("iir_blur", PICTURE, TINY, alpha=0.1),
    pipeline(
        "camera_pipe",
        {"H": 1968, "W": 2592},
        {"H": 48 + 64, "W": 32 + 128},
        color_temp=3700.0,
        gamma=2.0,
        contrast=50.0,
        sharpen_strength=1.0,
        blackLevel=25,
        whiteLevel=1023,
    ),
    pipeline("stencil_chain", PICTURE | {"stages": 32}, TINY),
    pipeline("max_filter", PICTURE | {"radius": 26}, TINY | {"W": 256}),
    pipeline("bilateral_grid", PICTURE | {"s_sigma": 8}, TINY, r_sigma=0.1),
    pipeline("conv_layer", {"N": 5, "H": 80, "W": 100, "CI": 128, "CO": 128}, {"N": 2, "H": 4, "W": 10, "CI": 8}),
    pipeline("mat_mul", {"M": 1024, "N": 1024, "K": 1024}, {"M": 64, "N": 128, "K": 40}),
    pipeline("depthwise_separable_conv", {"N": 4, "H": 112, "W": 112, "C": 32, "K": 16, "M": 1}, {"N": 1, "H": 12, "W": 14}),
    pipeline("nl_means", PICTURE | {"patch": 7, "search": 7}, TINY, sigma=0.12),
    pipeline("interpolate", PICTURE | {"levels": 10}, TINY | {"levels": 6}),
    pipeline("local_laplacian", PICTURE | {"intensities": 8, "levels": 8}, TINY | {"levels": 6}, alpha=1.0 / 7, beta=1.0),
    pipeline(
        "lens_blur",
        {"H": 320, "W": 192, "slices": 32, "focus": 13, "samples": 32, "R": 9, "levels": 8},
        {"H": 80, "W": 64, "slices": 8, "focus": 3, "samples": 4, "R": 2, "levels": 4},
        scale=0.5,
    ),
    pipeline(
        "bgu",
        PICTURE | {"h": 320, "w": 192, "cell": 16, "factor": 8},
        {"H": 160, "W": 96, "h": 40, "w": 24, "cell": 4, "factor": 4},
        r_sigma=0.125,
    ),
)

PIPELINES = Suite(workloads=WORKLOADS, goals=(), headings={FAMILY: "Image pipelines"})
