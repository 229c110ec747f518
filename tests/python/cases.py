"""All cases of cases_*.py."""

import cases_benchmarks
import cases_camera
import cases_filters
import cases_flextensor
import cases_images
import cases_paper
import cases_pyramids

CASES = (
    cases_paper.CASES
    + cases_benchmarks.CASES
    + cases_flextensor.CASES
    + cases_images.CASES
    + cases_camera.CASES
    + cases_filters.CASES
    + cases_pyramids.CASES
)
