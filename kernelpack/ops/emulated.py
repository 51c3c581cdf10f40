"""Kernels for numpy arrays: the PTX of a bundle on the CPU emulator, by the plan of a GPU.

    library = kernelpack.ops.EmulatedLibrary("kernels.kpk")
    c = kernelpack.ops.lora_shrink_qkv(a, b, a_offsets, expert_ids, library=library)

It is for correctness, not for speed: every launch is watched, and a kernel that breaks a rule
raises. No driver and no GPU is needed; the bundle's PTX, X.ptx.kpk, must lie beside it. Arrays are
copied into the emulated memory, which has red zones around each of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.faults import Fault, Level
from kernelpack.errors import BundleError, ProblemError, SelectionError
from kernelpack.load import load
from kernelpack.load.library import Library
from kernelpack.load.load import Paths
from kernelpack.load.overlay import overlay_of
from kernelpack.ops.checks import integer
from kernelpack.spec import arch as targets
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx
from kernelpack.spec.expr import evaluate
from kernelpack.spec.launch import is_absent
from kernelpack.spec.nearest import nearest
from kernelpack.spec.params import Argument
from kernelpack.spec.select import check_asked, names_of, of_abi, select, sizes_of
from kernelpack.spec.tuned import Measured
from kernelpack.spec.variant import Variant

if TYPE_CHECKING:
    from kernelpack.emulator.ptx.parser import Program

Arrays = Mapping[str, NDArray[Any]]
TARGETS = tuple(map(Arch, targets.TARGETS))
"""Targets that are pretended where none is named: the first that the bundle has a kernel for."""


class EmulatedLibrary:
    """The kernels of a bundle, for arrays in host memory.

    Args:
        path: the bundle, or several as one; None takes all that are installed as packages.
        arch: the target whose kernels run; without it each kernel's own, sm_100a if it has that.
        sm_count: multiprocessors of the device that is pretended; without it a real one's.
        schedule: an interleaving: `eager`, `fair`, `lazy` or `starving:RANK:WARP`.
        seed: of the choices it leaves open.
        level: what is watched for, or its name: `error`, `warn` or `strict`.
        tuned: a file of times that `kernelpack tune` measured, of a device as is pretended, which
            choose as they do there.

    Raises:
        BundleError: the bundle is missing or not sound; the times are of other machine code.
        ProblemError: a number is not one, or is out of range; or there is no such level.
        EmulationError: there is no such schedule.

    """

    def __init__(
        self,
        path: Paths | None = None,
        *,
        arch: str | None = None,
        sm_count: int | None = None,
        schedule: str = "eager",
        seed: int = 0,
        level: Level | str = Level.WARN,
        tuned: Path | str | None = None,
    ) -> None:
        from kernelpack.emulator.schedule import Schedule  # noqa: PLC0415 - a GPU needs none

        self.targets = TARGETS if arch is None else (Arch(arch),)
        self.sm_count = None if sm_count is None else integer(sm_count, "sm_count", least=1)
        self.seed = integer(seed, "seed", least=0)
        self.schedule, self.level = Schedule.parse(schedule).name, Level.of(level)
        self.bundle = load.open_without_driver(path)
        self.tuned = None if tuned is None else overlay_of(self.bundle, Path(tuned))

    def __repr__(self) -> str:
        """The bundles and how they are run."""
        how = f"{self.schedule}, seed {self.seed}, up to {self.level.name.lower()}"
        return f"<EmulatedLibrary: {self.bundle.where}, {how}>"

    def call(self, kernel: str, /, **given: Any) -> Any:  # noqa: ANN401 - one array or several
        """Compute any kernel by the names of its manifest, from numpy arrays.

        Args:
            kernel: its stem.
            given: by the manifest's names. Arrays: inputs, and outputs where new ones are not
                wanted; `out` is the output of a kernel that has one. Sizes that no side and no
                type of an array says, and numbers.

        Returns the outputs, in the manifest's order, one alone by itself. Those that are not given
        are made, and so is an argument called `workspace`, which is not returned.

        Raises:
            ProblemError: a name or a value is not what the manifest says; says what is.
            SelectionError: the library holds no kernel for this problem.
            BundleError: the bundle's PTX, X.ptx.kpk, is not beside it.
            EmulationError: the kernel broke a rule.

        """
        from kernelpack.ops.named import call  # noqa: PLC0415 - it needs this module

        return call(self, kernel, given)

    def prepare(self, kernel: str, /, **given: Any) -> Callable[..., Any]:  # noqa: ANN401
        """Check a call; what is returned computes it, and gives its outputs, each time."""
        from kernelpack.ops.named import prepare  # noqa: PLC0415 - it needs this module

        return prepare(self, kernel, given)

    def variants(self, kernel: str) -> tuple[Variant, ...]:
        """The variants of a kernel.

        Raises:
            ProblemError: `kernel` is not a name.
            SelectionError: there is none for the pretended targets.

        """
        check_asked(kernel, None, self.bundle.where)
        self._arch(kernel)
        return self.bundle.variants(kernel)

    def running(
        self, variants: Iterable[Variant], _device: int
    ) -> tuple[tuple[Variant, ...], dict[str, int]]:
        """Those of some variants of a kernel that run here, and the pretended device's sizes."""
        listed = tuple(variants)
        arch = self._arch(listed[0].kernel)
        kept = tuple(variant for variant in listed if variant.arch == arch)
        return kept, {"sm_count": self.multiprocessors(arch)}

    def known(self, kernel: str, given: Mapping[str, float]) -> dict[str, float]:
        """The part of an op's problem that the kernel knows; an older bundle may know less."""
        check_asked(kernel, None, self.bundle.where)
        names = names_of(self.bundle.variants(kernel))
        return {name: value for name, value in given.items() if name in names}

    def select(self, kernel: str, sizes: Mapping[str, float], abis: range) -> Variant:
        """The variant that a device of this target would take.

        Raises:
            ProblemError: a size is not an integer, below 0, or none of the kernel's.
            SelectionError: none serves the problem.
            BundleError: the bundle has the kernel in other ABIs only.

        """
        check_asked(kernel, abis, self.bundle.where)
        arch = self._arch(kernel)
        listed = [v for v in self.bundle.variants(kernel) if v.arch == arch]
        known = of_abi(listed, kernel, abis, self.bundle.where)
        device = {**sizes_of(sizes, known[0]), "sm_count": self.multiprocessors(arch)}
        return select(known, device, arch.capabilities[0], self._measured(kernel, arch))

    def _measured(self, kernel: str, arch: Arch) -> tuple[Measured, ...]:
        """The times of a kernel.

        Raises:
            BundleError: they are of another device than is pretended.

        """
        found = self.tuned.problems(kernel) if self.tuned else ()
        if self.tuned and found:
            device, here = self.tuned.device, self.multiprocessors(arch)
            if not arch.runs_on(device.capability) or device.sm_count != here:
                what = f"was measured on {device}; here is {arch} of {here} multiprocessors"
                hint = "`arch=` and `sm_count=` choose what is pretended"
                raise BundleError(what, where="`tuned`", hint=hint)
        return found

    def _arch(self, kernel: str) -> Arch:
        """The target whose variants of a kernel run."""
        built = {variant.arch for variant in self.bundle.variants(kernel)}
        for arch in self.targets:
            if arch in built:
                return arch
        names = " or ".join(map(str, self.targets))
        stems = {variant.kernel for variant in self.bundle.variants(None)}
        raise SelectionError(
            f"the bundle holds no `{kernel}` for {names}",
            where=self.bundle.where,
            hint=nearest(kernel, stems) or "`kernelpack ls` shows what it holds",
        )

    def multiprocessors(self, arch: Arch) -> int:
        """How many the device has that is pretended."""
        return self.sm_count or arch.multiprocessors

    def run(
        self, kernel: str, sizes: Mapping[str, float], arrays: Arrays, abis: range
    ) -> dict[str, NDArray[Any]]:
        """Choose a variant and run it; its outputs by argument name.

        Outputs are new arrays. Where `arrays` has one, it is what memory holds before the kernel
        runs, so what the kernel leaves is as it was; the array itself is not written.

        An array has the manifest's shape, may be larger along its first side, or is flat memory of
        at least as many elements; integers of the same size may stand for any bits. It lies without
        gaps, and a part of another begins at a multiple of the manifest's alignment.

        Raises:
            ProblemError: a size is not an integer, below 0, or none of the kernel's; an array is
                missing, is of another type, shape or name than the kernel's, or lies where a GPU
                would refuse it.
            BundleError: the PTX is not beside the bundle.
            EmulationError: the kernel broke a rule, or could not go on.

        """
        from kernelpack.emulator.call import call  # noqa: PLC0415 - a GPU needs no emulator

        variant = self.select(kernel, sizes, abis)
        known = {**sizes, "sm_count": self.multiprocessors(variant.arch)}
        check_arrays(variant, known, arrays)
        called = call(
            self.program(variant),
            variant,
            known,
            arrays,
            schedule=self.schedule,
            seed=self.seed,
            level=self.level,
        )
        called.result.raise_on_error()
        if findings := called.result.findings:
            more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
            raise Fault(f"{findings[0]}{more}", where=variant.id)
        if called.disturbed:
            what = f"input `{called.disturbed[0]}` was written"
            raise Fault(what, where=variant.id, hint="its manifest says that it is only read")
        return called.outputs

    def ptx(self, variant: Variant) -> Ptx:
        """The PTX that a variant's machine code was assembled from."""
        bundle = self.bundle.holding(variant.id)
        return bundle.ptx(bundle.find(variant.id).ptx_digest)

    def program(self, variant: Variant) -> "Program":
        """The PTX of a variant, parsed."""
        return _parsed(self.ptx(variant).text)


def check_arrays(variant: Variant, sizes: Mapping[str, float], arrays: Arrays) -> None:
    """Refuse what is not an array, or none of the kernel's: nothing would come of its elements.

    Raises:
        ProblemError: names it, and says what would be right.

    """
    known = {argument.name: argument for argument in variant.arguments}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            what = f"`{name}` is a {type(array).__name__}, not a numpy array"
            raise ProblemError(what, where=variant.kernel)
        if name not in known and array.size:
            hint = nearest(name, known) or f"its arrays: {', '.join(known)}"
            raise ProblemError(f"`{variant.kernel}` has no array `{name}`", hint=hint)
        if name in known and known[name].shape and not is_absent(known[name], sizes):
            _check_shape(variant, known[name], array, sizes)
            _check_place(variant, known[name], array)


def _check_shape(
    variant: Variant, argument: Argument, array: NDArray[Any], sizes: Mapping[str, float]
) -> None:
    first, *rest = (evaluate(side, sizes) for side in argument.shape)
    is_flat = array.ndim == 1 and array.size >= first * prod(rest)
    if not is_flat and (array.shape[1:] != tuple(rest) or array.shape[:1] < (first,)):
        sides = ", ".join(map(str, argument.shape))
        rule = f"`{argument.name}` must have the shape {[first, *rest]}, not {list(array.shape)}"
        raise ProblemError(rule, where=variant.kernel, hint=f"[{sides}]")


def _check_place(variant: Variant, argument: Argument, array: NDArray[Any]) -> None:
    """Refuse what a GPU would: gaps, and a part that begins where the kernel cannot read."""
    name, align = argument.name, argument.align_bytes
    if not array.flags.c_contiguous:
        what = f"`{name}` must be row-major without gaps, not of strides {list(array.strides)}"
        raise ProblemError(what, where=variant.kernel, hint="give a contiguous copy")
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    start = array.ctypes.data - owner.ctypes.data
    if start % align:
        what = (
            f"`{name}` must be aligned to {align} bytes, and begins at byte {start} of its memory"
        )
        raise ProblemError(what, where=variant.kernel, hint="a GPU would refuse it; give a copy")


@lru_cache(maxsize=16)
def _parsed(text: str) -> "Program":
    from kernelpack.emulator.ptx.parser import parse  # noqa: PLC0415 - a GPU needs no emulator

    return parse(text)


@cache
def default() -> EmulatedLibrary:
    """The installed bundles' kernels, opened once."""
    return EmulatedLibrary()


def is_for_emulator(inputs: Sequence[object], library: Library | EmulatedLibrary | None) -> bool:
    """Whether a call is for the emulator: its library is, or its arrays are numpy's.

    Raises:
        ProblemError: what was given is not a library.

    """
    if isinstance(library, EmulatedLibrary):
        return True
    _check_library(library)
    return bool(inputs) and all(isinstance(array, np.ndarray) for array in inputs)


def loaded(library: Library | EmulatedLibrary | None) -> Library:
    """The kernels for a GPU of what the caller gave; those of the installed bundle without it.

    Raises:
        ProblemError: what was given is not a library, or is the emulator's.

    """
    if isinstance(library, EmulatedLibrary):
        rule = "`library` is for the emulator, and a launch is prepared for a GPU"
        hint = "give what `kernelpack.load(path)` returns, or call the op itself: it runs there"
        raise ProblemError(rule, hint=hint)
    _check_library(library)
    return library or load.default()


def _check_library(library: object) -> None:
    if not isinstance(library, Library | None):
        raise ProblemError(
            f"`library` is a {type(library).__name__}, not a library",
            hint="give `kernelpack.load(path)`, or `kernelpack.ops.EmulatedLibrary(path)`",
        )


def emulated(library: Library | EmulatedLibrary | None) -> EmulatedLibrary:
    """The emulated kernels of what the caller gave."""
    if library is None:
        return default()
    return library if isinstance(library, EmulatedLibrary) else _of(library.bundle.paths)


@lru_cache(maxsize=4)
def _of(paths: tuple[Path, ...]) -> EmulatedLibrary:
    return EmulatedLibrary(paths)
