"""Small programs of two to eight statements, made of operators that people fuse, with the same in PyTorch.

KIND.tw has the programs of a kind, and the module KIND beside it what PyTorch computes: a function of the same name with the same
parameters, and the sizes at which both are measured. `FUSED` is the suite of all of them. Read program.py next.
"""

from fused import (
    attention,
    convolutions,
    distances,
    embeddings,
    losses,
    normalisations,
    optimisers,
    products,
    quantisation,
    scans,
    statistics,
)
from suite import Suite

KINDS = (
    normalisations.KIND,
    products.KIND,
    attention.KIND,
    losses.KIND,
    distances.KIND,
    scans.KIND,
    quantisation.KIND,
    convolutions.KIND,
    statistics.KIND,
    optimisers.KIND,
    embeddings.KIND,
)

FUSED = Suite(
    workloads=tuple(program for kind in KINDS for program in kind.programs),
    goals=(),
    headings={kind.name: kind.heading for kind in KINDS},
)
