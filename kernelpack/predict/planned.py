"""The launches of a call, and none of them run: ops with numpy arrays, on a library that notes.

    library = PlannedLibrary("kernels.kpk", arch="sm_90a")
    kernelpack.ops.mla_decode_fp8(q, …, library=library)
    launches = library.launches()

So an op's own rules choose the kernels and lay out their arguments, as on a GPU. Outputs are as
they were.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from kernelpack.ops.emulated import Arrays, EmulatedLibrary, check_arrays
from kernelpack.predict.inputs import Prepared, prepared, steers
from kernelpack.spec.variant import Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A launch that a call wanted: the variant that selection took, on a problem.

    Of its arrays it keeps copies of those that steer it: the caller's may be gone when it is made.
    """

    variant: Variant
    sizes: Mapping[str, float]
    arrays: Arrays


class PlannedLibrary(EmulatedLibrary):
    """The kernels of a bundle; a call's launches are noted and not run.

    Arguments and errors as of `EmulatedLibrary`.
    """

    def __init__(self, *args: Any, **given: Any) -> None:  # noqa: ANN401 - those of its base
        super().__init__(*args, **given)
        self.noted: list[Noted] = []

    def run(
        self, kernel: str, sizes: Mapping[str, float], arrays: Arrays, abis: range
    ) -> dict[str, NDArray[Any]]:
        """Note the launch; the outputs are what the arrays held.

        Raises:
            ProblemError: an array or a size is not as the kernel takes it.

        """
        variant = self.select(kernel, sizes, abis)
        known = {**sizes, "sm_count": self.multiprocessors(variant.arch)}
        check_arrays(variant, known, arrays)
        named = [a.name for a in variant.arguments if steers(a) and a.name in arrays]
        kept = {name: arrays[name].copy() for name in named}
        self.noted.append(Noted(variant=variant, sizes=known, arrays=kept))
        return dict(arrays)

    def launches(self) -> Iterator[Prepared]:
        """What was noted since the last time, ready to run, one after another.

        Raises:
            ProblemError: a launch exceeds a limit.
            BundleError: the bundle's PTX is missing.

        """
        noted, self.noted = self.noted, []
        for each in noted:
            yield prepared(self.program(each.variant), each.variant, each.sizes, each.arrays)
