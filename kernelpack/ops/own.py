"""An op's knowledge of a kernel beyond its manifest: rules, values, words of callers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from kernelpack.formats.dtype import DType
from kernelpack.ops.operation import Read, Traced


class Rules(Protocol):
    """An op's knowledge of a problem beyond its sizes."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is launched, though an output may have elements."""


P = TypeVar("P", bound=Rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyProblem:
    """The problem of who knows nothing beside the manifest."""

    is_empty: bool = False


def _any_problem(_sizes: Mapping[str, int]) -> Any:  # noqa: ANN401 - whatever P is
    return AnyProblem()


def _any_values(_problem: object, _read: Read) -> None:
    """A manifest does not say which values a kernel relies on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Own(Generic[P]):
    """An op's facts about a kernel beyond its manifest.

    Attributes:
        kernel: the kernel's stem.
        abis: the kernel-ABI numbers that this version can call; None: any.
        outputs: the caller's word for each output, by argument name.
        optional: outputs that a caller need not want.
        types: those of an array that may be bytes to its kernel, and yet not any bytes.
        problem: from all sizes to the op's own problem; refuses what breaks a rule of the op.
        traced: the outputs of tensors without values, from the arguments of a call.
        check_values: checks what lies in the inputs by what the kernel relies on.
        takes_any_values: whether the kernel relies on nothing there.
        cleared: outputs that are zeros where a problem has some and yet nothing is launched.

    """

    kernel: str
    abis: range | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    types: Mapping[str, tuple[DType, ...]] = field(default_factory=dict)
    problem: Callable[[Mapping[str, int]], P] = _any_problem
    traced: Callable[..., Traced] | None = None
    check_values: Callable[[P, Read], None] = _any_values
    takes_any_values: bool = False
    cleared: frozenset[str] = frozenset()

    def word(self, name: str) -> str:
        """The caller's word for an argument."""
        return self.outputs.get(name, name)
