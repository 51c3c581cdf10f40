"""Times of every variant that serves a problem, on an H200: what a prediction has to rank.

    for problem in problems():
        for variant_id, microseconds in problem.microseconds.items():
            launch = problem.launch(library, variant_id)

`kernelpack tune` measured them, as `bench` does: one call inside a CUDA graph of many.
"""

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelpack.kernels.registry import known
from kernelpack.predict.inputs import Prepared
from kernelpack.predict.planned import PlannedLibrary
from kernelpack.predict.problem import of_variant, steering

RESULTS = Path(__file__).parents[1] / "results"
FILES = {
    "tuned_lora.h200.json.xz": ("lora_shrink_qkv",),
    "tuned.h200.json.xz": ("nvfp4_w4a16_grouped_gemm", "nvfp4_grouped_gemm"),
}
"""Of LoRA shrink the later file: its kernels changed after the first."""
TYPED = ("m", "t", "n", "k", "g", "e", "n_active")
"""Sizes that make a case; types are bf16 in all of them, and the rest follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem, and the time of each variant that serves it.

    Attributes:
        kernel: the manifest's stem.
        sizes: of the problem, by the manifest's names.
        microseconds: by the variant's id.
        source: the file of benchmarks/results that has them.

    """

    kernel: str
    sizes: Mapping[str, int]
    microseconds: Mapping[str, float]
    source: str

    def launch(self, library: PlannedLibrary, variant_id: str) -> Prepared:
        """The launch of one of the variants.

        Raises:
            StopIteration: the library has no such variant.

        """
        variant = next(v for v in library.variants(self.kernel) if v.id == variant_id)
        definition = known()[self.kernel]
        case = definition.case({n: str(v) for n, v in self.sizes.items() if n in TYPED})
        arrays = steering(definition, case, variant, case.sizes)
        return of_variant(library, variant, case.sizes, arrays)


def problems(results: Path = RESULTS) -> Iterator[Problem]:
    """Every problem that was tuned, with all its times."""
    for name, kernels in FILES.items():
        tuned = json.loads(lzma.decompress((results / name).read_bytes()))
        for kernel in tuned["kernels"]:
            if kernel["kernel"] not in kernels:
                continue
            ids = [variant["id"] for variant in kernel["variants"]]
            for problem in kernel["problems"]:
                times = zip(ids, problem["nanoseconds"], strict=True)
                yield Problem(
                    kernel=kernel["kernel"],
                    sizes=problem["sizes"],
                    microseconds={name: t / 1000 for name, t in times if t},
                    source=name,
                )
