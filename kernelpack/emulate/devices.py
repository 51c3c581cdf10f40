"""The devices that a host program may find: what it reads of one, by CUDA's attribute numbers.

Numbers of the driver API's `CUdevice_attribute`; values are those that a B200 and an H100 SXM
report. An attribute that is not listed reads 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelpack.errors import KernelpackError

MULTIPROCESSORS, CAPABILITY_MAJOR, CAPABILITY_MINOR = 16, 75, 76

_COMMON = {
    1: 1024,  # threads a block
    2: 1024,  # block x
    3: 1024,  # block y
    4: 64,  # block z
    5: 2**31 - 1,  # grid x
    6: 65_535,  # grid y
    7: 65_535,  # grid z
    8: 49_152,  # shared bytes a block without asking
    9: 65_536,  # constant bytes
    10: 32,  # threads a warp
    11: 2**31 - 1,  # memory pitch
    12: 65_536,  # registers a block
    14: 512,  # texture alignment
    15: 1,  # copies overlap with kernels
    19: 1,  # host memory can be mapped
    31: 1,  # kernels run side by side
    39: 2048,  # threads a multiprocessor
    41: 1,  # unified addressing
    78: 1,  # stream priorities
    81: 233_472,  # shared bytes a multiprocessor
    82: 65_536,  # registers a multiprocessor
    83: 1,  # managed memory
    90: 1,  # compute preemption
    95: 1,  # cooperative launch
    97: 232_448,  # shared bytes a block that asks
    106: 32,  # blocks a multiprocessor
    111: 1024,  # shared bytes reserved a block
    115: 1,  # stream-ordered allocation
    120: 1,  # clusters
    127: 1,  # tensor maps
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


def _device(name: str, capability: tuple[int, int], multiprocessors: int, l2_bytes: int) -> Device:
    own = {
        MULTIPROCESSORS: multiprocessors,
        CAPABILITY_MAJOR: capability[0],
        CAPABILITY_MINOR: capability[1],
        13: 1_965_000,  # clock, kHz
        36: 3_996_000,  # memory clock, kHz
        37: 8192,  # memory bus, bits
        38: l2_bytes,
    }
    return Device(name=name, attributes=_COMMON | own)


DEVICES = {
    "b200": _device("Emulated B200", (10, 0), 148, 132_644_864),
    "h100": _device("Emulated H100", (9, 0), 132, 52_428_800),
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
