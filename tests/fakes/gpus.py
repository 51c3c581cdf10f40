"""GPUs to pretend: their memory, streams and launches, and whose turn it is in each thread."""

import ctypes
from dataclasses import dataclass, field
from threading import Lock, local

from kernelpack.spec.params import Slot


@dataclass(frozen=True)
class FakeDevice:
    """A GPU to pretend."""

    name: str = "NVIDIA H100"
    capability: tuple[int, int] = (9, 0)
    sm_count: int = 132
    cache_bytes: int = 50 << 20


@dataclass(frozen=True)
class Launched:
    """One launch as the driver saw it; `parameters` are the bytes of each."""

    entry: str
    device: int
    stream: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...]
    shared_bytes: int
    programmatic: bool
    captured: bool
    parameters: tuple[bytes, ...]

    def number(self, index: int) -> int:
        """Parameter `index` as an unsigned integer."""
        return int.from_bytes(self.parameters[index], "little")


@dataclass
class FakeStream:
    """A stream of a device."""

    device: int
    capturing: bool = False


@dataclass
class FakeGpus:
    """What the calls of a driver change. `answers` maps a call's name to the code it gives."""

    devices: tuple[FakeDevice, ...] = (FakeDevice(),)
    version: int = 13_000
    answers: dict[str, int] = field(default_factory=dict)
    signatures: dict[str, tuple[Slot, ...]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    launches: list[Launched] = field(default_factory=list)
    attributes: dict[tuple[int, int, int], int] = field(default_factory=dict)
    streams: dict[int, FakeStream] = field(default_factory=dict)
    images: dict[int, bytes] = field(default_factory=dict)
    memory: dict[int, tuple[int, object, int]] = field(default_factory=dict)
    waits: list[tuple[int, int]] = field(default_factory=list)
    gpc: int = 0  # multiprocessors of a GPC; 0: all of them are one
    asked: list[tuple[int, int, int]] = field(default_factory=list)  # ctas, threads, shared bytes

    def __post_init__(self) -> None:
        self._thread = local()
        self._lock = Lock()
        self._next = 0x5000
        self._kernels: dict[int, tuple[int, str]] = {}
        self._events: dict[int, int] = {}

    def count(self, name: str) -> int:
        """How often a call was made."""
        return self.calls.count(name)

    def new_stream(self, device: int = 0, *, capturing: bool = False) -> int:
        """A stream of a device."""
        handle = self._handle()
        self.streams[handle] = FakeStream(device, capturing)
        return handle

    def new_memory(self, size: int, device: int = 0) -> int:
        """Memory of a device, aligned to 256 bytes; returns its address."""
        buffer = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(buffer) // 256) * 256
        self.memory[address] = (device, buffer, size)
        return address

    def _handle(self) -> int:
        with self._lock:
            self._next += 16
            return self._next

    @property
    def stack(self) -> list[int]:
        """The contexts of the calling thread."""
        if not hasattr(self._thread, "stack"):
            self._thread.stack = []
        return self._thread.stack

    def _capturing(self) -> bool:
        return any(stream.capturing for stream in self.streams.values())
