"""Times of all variants that serve a problem: each problem is made again as it was measured."""

import pytest

from benchmarks.predict.tuned import TYPED, problems
from kernelpack.kernels.registry import known

PROBLEMS = tuple(problems())


@pytest.mark.parametrize(
    ("kernel", "count"),
    [("lora_shrink_qkv", 77), ("nvfp4_grouped_gemm", 58), ("nvfp4_w4a16_grouped_gemm", 58)],
)
def test_every_problem_is_read(kernel, count):
    """As many as docs/notes/tuning.md says, each with times to compare."""
    found = [problem for problem in PROBLEMS if problem.kernel == kernel]
    assert count == len(found)
    assert all(len(problem.microseconds) > 1 for problem in found)


def test_a_case_has_the_sizes_that_were_measured():
    """Those that are typed say the others too."""
    made = [
        known()[p.kernel].case({n: str(v) for n, v in p.sizes.items() if n in TYPED}).sizes
        for p in PROBLEMS
    ]
    assert [dict(p.sizes) for p in PROBLEMS] == made
