"""Compilation targets, the devices each runs on, and the limits of each.

A target is what ptxas is asked for (`sm_100a`); a device says its compute capability, `(10, 0)`.
Which target runs where is a table, not arithmetic: `a` targets run on one capability, `f` targets
on a family that the compiler names (asked of ptxas 13.4, see docs/adr/0007).
"""

from dataclasses import dataclass

from kernelpack.errors import KernelpackError
from kernelpack.spec.nearest import nearest

Capability = tuple[int, int]
"""A device's compute capability, `(major, minor)`."""

FAMILIES: dict[str, tuple[Capability, ...]] = {
    "sm_90a": ((9, 0),),
    "sm_100a": ((10, 0),),
    "sm_100f": ((10, 0), (10, 3), (10, 7)),
    "sm_103a": ((10, 3),),
}
"""The targets kernelpack builds for, and the capabilities that each one's machine code runs on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one thread block may use; bytes, columns, counts."""

    shared_bytes: int = 232_448  # 227 KiB, opt-in maximum of a block on 9.0 and 10.x
    tensor_memory_columns: int = 0
    registers_per_thread: int = 255
    threads: int = 1024
    cluster: int = 16  # above PORTABLE_CLUSTER the function must allow it
    parameter_base: int = 0x380  # where a kernel's parameters begin in its constant bank


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiprocessor:
    """What the blocks on one multiprocessor share (CUDA C++ Programming Guide, 9.0 and 10.x)."""

    shared_bytes: int = 233_472
    block_shared_bytes: int = 1024  # that the system keeps in each block
    registers: int = 65_536
    registers_come_by: int = 8  # of a thread
    threads: int = 2048
    blocks: int = 32


MULTIPROCESSOR = Multiprocessor()

PORTABLE_CLUSTER = 8
_HOPPER = Limits(parameter_base=0x210)
_BLACKWELL = Limits(tensor_memory_columns=512)

# An H200 holds 66, 30, 15 and 7 clusters of 2, 4, 8 and 16 CTAs that each fill a multiprocessor:
# measured, and what these GPCs give. A GPU of the same name may have others.
_HOPPER_GPCS = (18, 18, 18, 18, 18, 18, 16, 8)
# No B200 was asked. CUTLASS reckons with GPCs of 20 and what is left: 120 CTAs in clusters of 8
# (include/cutlass/gemm/kernel/tile_scheduler_params.h, get_max_cta_occupancy).
_BLACKWELL_GPCS = (20, 20, 20, 20, 20, 20, 20, 8)


@dataclass(frozen=True, slots=True, order=True)
class Arch:
    """A compilation target by name, such as `Arch("sm_100a")`.

    Raises:
        KernelpackError: the name is not one of `FAMILIES`.

    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in FAMILIES:
            raise KernelpackError(
                f"unknown architecture `{self.name}` (known: {', '.join(FAMILIES)})",
                hint=nearest(self.name, FAMILIES),
            )

    def __str__(self) -> str:
        return self.name

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """The compute capabilities this target's machine code runs on."""
        return FAMILIES[self.name]

    @property
    def limits(self) -> Limits:
        """What a block may use on this target."""
        return _HOPPER if self.name == "sm_90a" else _BLACKWELL

    @property
    def multiprocessors(self) -> int:
        """How many the GPU has that a target is made for: an H100 or H200, or a B200."""
        return sum(self.gpcs)

    @property
    def gpcs(self) -> tuple[int, ...]:
        """The multiprocessors of each GPC of that GPU; a cluster lies in one."""
        return _HOPPER_GPCS if self.name == "sm_90a" else _BLACKWELL_GPCS

    def runs_on(self, capability: Capability) -> bool:
        """Whether a device of this capability executes this target's machine code."""
        return capability in FAMILIES[self.name]
