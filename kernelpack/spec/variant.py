"""A variant: one kernel with all its constants, and everything a program needs to launch it.

A variant is what a manifest expands to, what a bundle holds, and what a problem selects.
Its expressions name only sizes of a problem (`m`, `k`) and of the device (`DEVICE_SIZES`): axes
and derived constants are folded in when it is made.
"""

import re
from dataclasses import dataclass, field

from kernelpack.spec.arch import Arch
from kernelpack.spec.expr import ONE, ZERO, Expr
from kernelpack.spec.params import Argument, Param, Slot, layout

DEVICE_SIZES = ("sm_count",)
"""Sizes that the device gives and every expression may use."""

Axis = tuple[str, int | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """Grid, block and cluster (x, y, z) and dynamic shared memory in bytes, as expressions."""

    grid: tuple[Expr, Expr, Expr]
    block: tuple[Expr, Expr, Expr]
    cluster: tuple[Expr, Expr, Expr] = (ONE, ONE, ONE)
    shared_bytes: Expr = ZERO
    programmatic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A claim that a problem must meet to be served, and why, for the one who is refused."""

    when: Expr
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most a compiled variant may use; a spill of any size exceeds every budget."""

    registers: int
    shared_bytes: int
    tensor_memory_columns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A named integer of a problem, and what it means."""

    name: str
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A named real number of a call, what it means, and what it is where it is not given."""

    name: str
    doc: str
    default: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One kernel with its constants.

    Attributes:
        kernel: the kernel's stem, such as `lora_shrink_qkv`.
        abi: the kernel's ABI number; it changes when a caller would have to change.
        arch: the target it is compiled for.
        axes: the axis values that make it this variant, in the manifest's order.
        constants: what its template sees: axes and derived constants.
        template: the template's path under `templates/`.
        sizes: the sizes of a problem that its expressions may name.
        numbers: the numbers of a call that its parameters may take.
        arguments: the arrays a caller gives.
        params: the kernel's signature.
        guards: what a problem must meet; all of them.
        cost: among the variants that serve a problem, the least cost is taken.
        workspace_bytes: scratch memory a call needs.

    """

    kernel: str
    abi: int
    arch: Arch
    axes: tuple[Axis, ...]
    constants: tuple[Axis, ...] = field(repr=False)
    template: str
    sizes: tuple[Size, ...] = field(repr=False)
    numbers: tuple[Number, ...] = field(repr=False, default=())
    arguments: tuple[Argument, ...] = field(repr=False)
    params: tuple[Param, ...] = field(repr=False)
    launch: LaunchSpec = field(repr=False)
    guards: tuple[Guard, ...] = field(repr=False)
    cost: Expr = field(repr=False)
    workspace_bytes: Expr = field(repr=False, default=ZERO)
    budget: Budget = field(repr=False)

    @property
    def id(self) -> str:
        """The name people use: `kernel[arch=…,AXIS=…]`, the same in every file and message."""
        axes = "".join(f",{_lower(name)}={value}" for name, value in self.axes)
        return f"{self.kernel}[arch={self.arch}{axes}]"

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Where the cubin has each parameter, in bytes of the parameter block."""
        return layout(self.params, self.arch.target.parameter_base)

    @property
    def entry(self) -> str:
        """The kernel's symbol, which profilers show."""
        words = [self.kernel, *(str(value) for _, value in self.axes)]
        return re.sub(r"\W", "_", "_".join(words), flags=re.ASCII)


def _lower(name: str) -> str:
    """A name with small letters, as every language has them: of ASCII alone, by `bytes.lower`."""
    return name.encode().lower().decode()
