"""The devices that a host program may find: what it reads of one, by CUDA's attribute numbers.

Numbers of the driver API's `CUdevice_attribute`; values are those that a B200 and an H100 SXM
report; a B300 was not asked, and is taken for a B200. An attribute that is not listed reads 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelpack.errors import KernelpackError
from kernelpack.spec.arch import TARGETS, Target

MULTIPROCESSORS, CAPABILITY_MAJOR, CAPABILITY_MINOR = 16, 75, 76

_COMMON = {
    8: 49_152,  # shared bytes a block without asking
    9: 65_536,  # constant bytes
    10: 32,  # threads a warp
    11: 2**31 - 1,  # memory pitch
    14: 512,  # texture alignment
    15: 1,  # copies overlap with kernels
    19: 1,  # host memory can be mapped
    31: 1,  # kernels run side by side
    41: 1,  # unified addressing
    78: 1,  # stream priorities
    83: 1,  # managed memory
    90: 1,  # compute preemption
    95: 1,  # cooperative launch
    115: 1,  # stream-ordered allocation
    120: 1,  # clusters
    127: 1,  # tensor maps
}


def _of(target: Target) -> dict[int, int]:
    """The attributes that the row of a target says."""
    limits, on = target.limits, target.multiprocessor
    major, minor = target.capabilities[0]
    return {
        1: limits.threads,
        **dict(zip((2, 3, 4), limits.block, strict=True)),
        **dict(zip((5, 6, 7), limits.grid, strict=True)),
        12: limits.registers,
        MULTIPROCESSORS: target.multiprocessors,
        39: on.threads,
        CAPABILITY_MAJOR: major,
        CAPABILITY_MINOR: minor,
        81: on.shared_bytes,
        82: on.registers,
        97: limits.shared_bytes,
        106: on.blocks,
        111: on.block_shared_bytes,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device: its name, its compute capability such as (10, 0), its attributes by number."""

    name: str
    attributes: Mapping[int, int]

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor number."""
        return self.attributes[CAPABILITY_MAJOR], self.attributes[CAPABILITY_MINOR]

    def with_multiprocessors(self, count: int) -> "Device":
        """The same device, larger or smaller: persistent kernels launch a CTA for each."""
        return replace(self, attributes={**self.attributes, MULTIPROCESSORS: count})


def _device(name: str, target: str, l2_bytes: int) -> Device:
    own = {
        13: 1_965_000,  # clock, kHz
        36: 3_996_000,  # memory clock, kHz
        37: 8192,  # memory bus, bits
        38: l2_bytes,
    }
    return Device(name=name, attributes=_COMMON | _of(TARGETS[target]) | own)


DEVICES = {
    "b200": _device("Emulated B200", "sm_100a", 132_644_864),
    "b300": _device("Emulated B300", "sm_103a", 132_644_864),
    "h100": _device("Emulated H100", "sm_90a", 52_428_800),
}
"""The profiles by name; the first is the default."""


def find(name: str) -> Device:
    """The profile of that name.

    Raises:
        KernelpackError: there is none.

    """
    if name not in DEVICES:
        raise KernelpackError(f"no device `{name}`", hint=f"devices: {', '.join(DEVICES)}")
    return DEVICES[name]
