"""Halide's applications for its Python package, one module a pipeline: the algorithm, and the expert schedule beside it.

A module NAME has
    inputs(rng, s)    the arrays that both compilers get, by the names of examples/pipelines/NAME.tw; `s` are its sizes
    result(s)         an empty array for the result
    pipeline(given)   the Func that computes the result; `given` has the inputs, and says whether to apply the expert schedule
and, where they are not the usual,
    ORIGIN            the coordinates of the result's first pixel, x first; (0, 0, …) elsewhere
    TOLERANCE         the largest difference allowed, relative to the largest element; nothing for integers, 1e-5 for floats
    SHARE             the share of elements that may differ by more than this: where rounding decides between two integers

Algorithms and schedules follow https://github.com/halide/Halide, apps/NAME/NAME_generator.cpp, for CPUs.
"""
