"""A handful of problems, and the variants for sm_100a that may serve them: what selection chooses.

`cost` in a manifest is arithmetic; `samples choices` and `compare choices` give each variant the
time that its own PTX predicts. Variants that cost far more than the cheapest are left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kernelpack.kernels.registry import known
from kernelpack.predict.inputs import Prepared
from kernelpack.predict.planned import PlannedLibrary
from kernelpack.predict.problem import of_variant, steering
from kernelpack.spec.select import judge
from kernelpack.spec.variant import Variant

KERNELS = (
    "lora_shrink_qkv",
    "nvfp4_grouped_gemm",
    "nvfp4_quantize",
    "sparse_mla_prefill",
    "mla_decode_attention",
)
"""Those whose times on a B200 are predicted."""
PROBLEMS: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "lora_shrink_qkv": (
        {"m": 8192, "k": 7168, "n": 16, "g": 8},
        {"m": 4096, "k": 4096, "n": 32, "g": 32},
        {"m": 2048, "k": 4096, "n": 16, "g": 4},
        {"m": 128, "k": 7168, "n": 64, "g": 32},
        {"m": 16, "k": 7168, "n": 16, "g": 4},
    ),
    "nvfp4_grouped_gemm": (
        {"t": 8, "n": 4096, "k": 7168, "e": 8, "n_active": 8},
        {"t": 128, "n": 7168, "k": 2048, "e": 8, "n_active": 8},
        {"t": 256, "n": 512, "k": 7168, "e": 32, "n_active": 32},
        {"t": 2048, "n": 7168, "k": 256, "e": 32, "n_active": 32},
    ),
}
CAPABILITY, MULTIPROCESSORS = (10, 0), 148
NEAR = 1.6
"""How often the least cost a variant may cost, to be replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A problem and one of the variants that may serve it."""

    kernel: str
    problem: str
    variant: Variant
    cost: float
    sizes: Mapping[str, float] = field(repr=False)

    @property
    def key(self) -> str:
        """Unique; the variant's id comes last."""
        return f"{self.kernel}|{self.problem}|{self.variant.id}"

    def launch(self, library: PlannedLibrary) -> Prepared:
        """The launch."""
        definition = known()[self.kernel]
        case = definition.case(dict(word.split(" ") for word in self.problem.split(", ")))
        arrays = steering(definition, case, self.variant, self.sizes)
        return of_variant(library, self.variant, self.sizes, arrays)


def choices(library: PlannedLibrary) -> Iterator[Choice]:
    """All of them, with a bundle's variants."""
    for kernel in PROBLEMS:
        yield from of_kernel(kernel, library.variants(kernel))


def of_kernel(kernel: str, variants: Iterable[Variant]) -> Iterator[Choice]:
    """Those of a kernel; of a problem the cheapest first."""
    definition, variants = known()[kernel], tuple(variants)
    for given in PROBLEMS[kernel]:
        case = definition.case({name: str(value) for name, value in given.items()})
        sizes = {**case.sizes, "sm_count": MULTIPROCESSORS}
        verdicts = (judge(variant, sizes, CAPABILITY) for variant in variants)
        serving = [(v.cost, v.variant) for v in verdicts if v.cost is not None]
        serving = [each for each in serving if each[1].arch.name == "sm_100a"]
        serving.sort(key=lambda each: (each[0], each[1].id))
        for cost, variant in serving:
            if cost <= NEAR * serving[0][0]:
                yield Choice(
                    kernel=kernel,
                    problem=", ".join(f"{name} {value}" for name, value in given.items()),
                    variant=variant,
                    cost=cost,
                    sizes=sizes,
                )
