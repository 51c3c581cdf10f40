"""Which variant of a bundle serves a problem on a device. What was asked before is remembered."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kernelpack.bundle.joined import Joined
from kernelpack.bundle.reader import Bundle
from kernelpack.errors import ProblemError, SelectionError
from kernelpack.load.overlay import is_of
from kernelpack.runtime.driver import Driver
from kernelpack.spec.select import judge, names_of, of_abi, select, sizes_of
from kernelpack.spec.tuned import Measured, Overlay
from kernelpack.spec.variant import Variant

REMEMBERED = 4096
"""Problems whose variant, and calls whose plan, are remembered."""

Items = tuple[tuple[str, Any], ...]
Kinds = tuple[object, ...]


def key(given: Mapping[str, float]) -> tuple[Items, Kinds]:
    """What a call is remembered by: 2 is not 2.0, and 0.0 not -0.0, though they are equal.

    Raises:
        ProblemError: a value is not a number; names it.

    """
    items = tuple(given.items())
    for name, value in items:
        if value.__class__.__hash__ is None:
            what = f"must be a number, not a {type(value).__name__}"
            raise ProblemError(what, where=f"`{name}`")
    return items, tuple([type(v) if isinstance(v, int) else repr(v) for v in given.values()])


class Choices:
    """The variants of a bundle, and which is best: by times of a device, else by their costs."""

    def __init__(self, bundle: Bundle | Joined, driver: Driver, tuned: Overlay | None) -> None:
        self._bundle, self._driver, self._tuned = bundle, driver, tuned
        self.variants = lru_cache(maxsize=None)(bundle.variants)
        """Of one kernel, or of all for None."""
        self.names = lru_cache(maxsize=None)(lambda *kernel: names_of(self.of_abi(*kernel)))
        """The names that a kernel's problem has; arguments as of `of_abi`."""
        self._chosen = lru_cache(maxsize=REMEMBERED)(self._choose)

    def select(
        self, kernel: str, sizes: Mapping[str, float], device: int, abis: range | None
    ) -> Variant:
        """The variant that serves a problem best; arguments and errors as of `Library.select`."""
        return self._chosen(kernel, *key(sizes), device, abis)

    def of_abi(self, kernel: str, abis: range | None) -> tuple[Variant, ...]:
        """The variants of a kernel, whose ABI is one of some.

        Raises:
            SelectionError: there is none.
            BundleError: the kernel's ABI is another one.

        """
        listed: tuple[Variant, ...] = self.variants(kernel)
        if not listed:
            stems = ", ".join(sorted({v.kernel for v in self.variants(None)}))
            raise SelectionError(
                f"the bundle holds no kernel `{kernel}`",
                where=self._bundle.where,
                hint=f"it holds: {stems}",
            )
        return of_abi(listed, kernel, abis, self._bundle.where)

    def best(
        self,
        candidates: tuple[Variant, ...],
        given: Mapping[str, float],
        ordinal: int,
        measured: tuple[Measured, ...] = (),
    ) -> Variant:
        """The variant that serves best on a device."""
        device = self._driver.device(ordinal)
        sizes = self.sizes(sizes_of(given, candidates[0]), ordinal)
        try:
            return select(candidates, sizes, device.capability, measured)
        except SelectionError as error:
            where = f"{self._bundle.where} on {device}, {self._driver}"
            raise SelectionError(error.what, where=where, hint=error.hint) from None

    def sizes(self, problem: Mapping[str, float], ordinal: int) -> dict[str, float]:
        """A problem's sizes with those of the device."""
        return {**problem, "sm_count": self._driver.device(ordinal).sm_count}

    def refusal(self, error: SelectionError, variant: Variant, ordinal: int) -> SelectionError:
        """Every candidate for the device, where the chosen one turned out not to run on it."""
        capability = self._driver.device(ordinal).capability
        others = [other for other in self.variants(variant.kernel) if other.id != variant.id]
        lines = [
            "candidates:",
            f"{variant.id}: chosen, and refused by the driver",
            *(f"{other.id}: {_judge_arch(other, capability)}" for other in others),
        ]
        hint = "\n  ".join(lines)
        return SelectionError(error.what, where=error.where, hint=hint)

    def _choose(
        self, kernel: str, given: Items, _kinds: Kinds, ordinal: int, abis: range | None
    ) -> Variant:
        candidates, measured = self.of_abi(kernel, abis), self._measured(kernel, ordinal)
        return self.best(candidates, dict(given), ordinal, measured)

    def _measured(self, kernel: str, ordinal: int) -> tuple[Measured, ...]:
        """The times of a kernel that are of a device."""
        if self._tuned is None or not is_of(self._tuned, self._driver.device(ordinal)):
            return ()
        return self._tuned.problems(kernel)


def _judge_arch(variant: Variant, capability: tuple[int, int]) -> str:
    """Why a variant is or is not a candidate for a device."""
    if variant.arch.runs_on(capability):
        return "built for this device, not the one chosen for the problem"
    return judge(variant, {}, capability).reason
