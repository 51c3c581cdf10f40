"""Compilation targets: one row each, which says all that differs between them.

A target is what ptxas is asked for (`sm_100a`); a device says its compute capability, `(10, 0)`.
Which target runs where is a table, not arithmetic: `a` targets run on one capability, `f` targets
on a family that the compiler names (asked of ptxas 13.4, see docs/adr/0007).

Limits of a launch, sizes of a GPU and instructions are here alone: the manifest, the emulator
and its devices ask the row, and the C++ loader's table is written from it (docs/generate.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kernelpack.errors import KernelpackError
from kernelpack.spec.nearest import nearest

Capability = tuple[int, int]
"""A device's compute capability, `(major, minor)`."""

Sides = tuple[int, int, int]
"""Counts along x, y, z."""

PORTABLE_CLUSTER = 8
"""CTAs of a cluster that every device takes; for more the function must allow it."""

SYSTEM_SHARED_BYTES = 1024
"""Shared memory that the system keeps in each block, below the block's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Targets that one template is written for.

    Attributes:
        name: the word for it in manifests and templates.
        architectures: whose `a` and `f` targets have its instructions (PTX ISA 9.1, "Target ISA
            Notes"); also those that kernelpack does not build for.
        opcodes: instructions that no other family has.
        copies: modifiers of tensor copies that no other family has (PTX ISA 9.7.9.27.1.2). Gathers
            to `.shared::cta` are for others too, of which the emulator has none.

    """

    name: str
    architectures: tuple[str, ...]
    opcodes: frozenset[str]
    copies: tuple[str, ...] = ()

    def has(self, target: str) -> bool:
        """Whether PTX of this `.target` may use the family's instructions."""
        return target.endswith(("a", "f")) and architecture(target) in self.architectures


HOPPER = Family(name="hopper", architectures=("sm_90",), opcodes=frozenset({"wgmma"}))
BLACKWELL = Family(
    name="blackwell",
    architectures=("sm_100", "sm_101", "sm_103", "sm_107", "sm_110"),
    opcodes=frozenset({"tcgen05"}),
    copies=("tile::gather4", "tile::scatter4", "cta_group::1", "cta_group::2"),
)
FAMILIES = (HOPPER, BLACKWELL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a launch: bytes, columns, counts.

    What has a default is the same for every capability from 9.0 on (CUDA C++ Programming Guide,
    "Technical Specifications per Compute Capability").
    """

    shared_bytes: int  # of a block that asks for more than 48 KiB
    tensor_memory_columns: int
    cluster: int  # above PORTABLE_CLUSTER the function must allow it
    grid: Sides = (2**31 - 1, 65_535, 65_535)
    block: Sides = (1024, 1024, 64)
    threads: int = 1024
    registers: int = 65_536  # of a block's threads together
    registers_per_thread: int = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiprocessor:
    """Resources that the blocks on one multiprocessor share (the same source)."""

    shared_bytes: int
    threads: int
    blocks: int
    block_shared_bytes: int = SYSTEM_SHARED_BYTES
    registers: int = 65_536
    registers_come_by: int = 8  # of a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A row: what the machine code of a target is, and the GPU that it is made for.

    Attributes:
        family: what its kernels are written for.
        capabilities: of the devices that run its machine code.
        limits: what a launch may ask for.
        multiprocessor: what the blocks on one share.
        gpcs: the multiprocessors of each GPC of that GPU; a cluster lies in one.
        parameter_base: where a kernel's parameters begin in its constant bank.

    """

    family: Family
    capabilities: tuple[Capability, ...]
    limits: Limits
    multiprocessor: Multiprocessor
    gpcs: tuple[int, ...]
    parameter_base: int

    @property
    def multiprocessors(self) -> int:
        """How many that GPU has."""
        return sum(self.gpcs)


# 227 KiB of a block and 228 of a multiprocessor on 9.0 and on 10.x.
_OF_HOPPER = Limits(shared_bytes=232_448, tensor_memory_columns=0, cluster=16)
_OF_BLACKWELL = Limits(shared_bytes=232_448, tensor_memory_columns=512, cluster=16)
_LARGE = Multiprocessor(shared_bytes=233_472, threads=2048, blocks=32)

# An H200 holds 66, 30, 15 and 7 clusters of 2, 4, 8 and 16 CTAs that each fill a multiprocessor:
# measured, and what these GPCs give. A GPU of the same name may have others.
_H200 = (18, 18, 18, 18, 18, 18, 16, 8)
# No B200 was asked. CUTLASS reckons with GPCs of 20 and what is left: 120 CTAs in clusters of 8
# (include/cutlass/gemm/kernel/tile_scheduler_params.h, get_max_cta_occupancy). Nor was a B300,
# which is reckoned to be as large.
_B200 = (20, 20, 20, 20, 20, 20, 20, 8)


def _blackwell(*capabilities: Capability) -> Target:
    """A row of 10.x, which differ in where they run alone."""
    return Target(
        family=BLACKWELL,
        capabilities=capabilities,
        limits=_OF_BLACKWELL,
        multiprocessor=_LARGE,
        gpcs=_B200,
        parameter_base=0x380,
    )


TARGETS = {
    "sm_100a": _blackwell((10, 0)),
    "sm_103a": _blackwell((10, 3)),
    "sm_100f": _blackwell((10, 0), (10, 3), (10, 7)),
    "sm_90a": Target(
        family=HOPPER,
        capabilities=((9, 0),),
        limits=_OF_HOPPER,
        multiprocessor=_LARGE,
        gpcs=_H200,
        parameter_base=0x210,
    ),
}
"""The targets that kernelpack builds for; the emulator runs the first that it has a kernel for."""

_SMALL = (
    "it has 99 KiB of shared memory a block, clusters of 8, and neither wgmma nor tensor memory, "
    "and no kernel is written for that"
)
REFUSED = {"sm_120": _SMALL, "sm_121": _SMALL}
"""Architectures that are not targets, and why."""

MOST_CTAS = max(target.limits.cluster for target in TARGETS.values())
"""CTAs of the largest cluster that any target has."""


def architecture(target: str) -> str:
    """The prefix of a target's name: `sm_100` of `sm_100a`, `sm_100f` and `sm_100`."""
    return target.rstrip("af")


def unknown(name: str) -> tuple[str, str]:
    """The error and the hint for a name that is not a target's."""
    targets = ", ".join(TARGETS)
    if reason := REFUSED.get(architecture(name)):
        return f"`{name}` is not a target: {reason}", f"targets: {targets}"
    return f"unknown architecture `{name}` (known: {targets})", nearest(name, TARGETS)


def preferred(known: Iterable["Arch"]) -> "Arch":
    """Of some targets the first of the table: what is run where nobody says which."""
    return min(known, key=lambda arch: list(TARGETS).index(arch.name))


def of_ptx(target: str) -> Target:
    """The row of a PTX module's `.target`, which may be one that kernelpack does not build for.

    PTX for an older or a plain target runs on a later GPU: the first target's.

    Raises:
        KernelpackError: it is for GPUs that are refused by name.

    """
    if architecture(target) in REFUSED:
        what, hint = unknown(target)
        raise KernelpackError(what, hint=hint)
    if target in TARGETS:
        return TARGETS[target]
    rows = list(TARGETS.values())
    return next((row for row in rows if architecture(target) in row.family.architectures), rows[0])


@dataclass(frozen=True, slots=True, order=True)
class Arch:
    """A compilation target by name, such as `Arch("sm_100a")`.

    Raises:
        KernelpackError: the name has no row in `TARGETS`.

    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            what = f"a target is named by a text, not {self.name!r}"
            raise KernelpackError(what, hint=f"targets: {', '.join(TARGETS)}")
        if self.name not in TARGETS:
            what, hint = unknown(self.name)
            raise KernelpackError(what, hint=hint)

    def __str__(self) -> str:
        return self.name

    @property
    def target(self) -> Target:
        """Its row."""
        return TARGETS[self.name]

    @property
    def family(self) -> str:
        """The name of its family, `hopper` or `blackwell`."""
        return self.target.family.name

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """The compute capabilities this target's machine code runs on."""
        return self.target.capabilities

    @property
    def limits(self) -> Limits:
        """The limits of a launch on this target."""
        return self.target.limits

    @property
    def multiprocessors(self) -> int:
        """How many the GPU has that a target is made for: an H100 or H200, a B200, or a B300."""
        return self.target.multiprocessors

    @property
    def gpcs(self) -> tuple[int, ...]:
        """The multiprocessors of each GPC of that GPU; a cluster lies in one."""
        return self.target.gpcs

    def runs_on(self, capability: Capability) -> bool:
        """Whether a device of this capability executes this target's machine code."""
        return capability in self.capabilities
