# ruff: noqa: N802 - the calls are spelt as CUDA spells them
"""A stand-in for libcuda behind `cuda.bindings.driver`: records calls, answers what a test sets.

Contexts are kept for each thread, device memory is host memory, and a launch is decoded from the
structures that the real driver would read. It refuses what the real one refuses: work without a
current context, a capture, shared memory above 48 KiB that was not asked for.
"""

import ctypes
from dataclasses import dataclass, field
from math import prod
from threading import Lock, local
from types import SimpleNamespace

from cuda.bindings import driver as bindings

from kernelpack.runtime.launch import LaunchAttribute, LaunchConfig
from kernelpack.spec.params import Slot

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND = 1, 201, 400, 500
UNSUPPORTED_IN_CAPTURE = 900
DEFAULT_SHARED_BYTES = 48 * 1024


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
class FakeCuda:
    """The binding module's face. `answers` maps a call's name to the code it gives."""

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
        pointers = (ctypes.c_void_p,) * 4
        launch = ctypes.CFUNCTYPE(ctypes.c_int, *pointers)(self._launch)
        current = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._get_current)
        clusters = ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:3])(self._clusters)
        of_two = ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:2])
        self._entries = {
            b"cuLaunchKernelEx": launch,
            b"cuCtxGetCurrent": current,
            b"cuOccupancyMaxActiveClusters": clusters,
            b"cuStreamGetCtx": of_two(self._stream_context),
            b"cuStreamIsCapturing": of_two(self._is_capturing),
            b"cuTensorMapReplaceAddress": of_two(self._replace_address),
        }

    def __getattr__(self, name: str):
        """Enumerations and integer types are those of cuda.bindings; calls are wrapped methods."""
        if name.startswith("cu") and hasattr(type(self), f"on_{name}"):
            return lambda *arguments: self._answer(name, arguments)
        return getattr(bindings, name)

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

    def _answer(self, name: str, arguments: tuple) -> tuple:
        with self._lock:
            self.calls.append(name)
        if self.answers.get(name):
            return (self.answers[name], None)
        result = getattr(self, f"on_{name}")(*arguments)
        return result if isinstance(result, tuple) else (0, result)

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

    # What a kernelpack program calls, as the bindings spell it.

    def on_cuInit(self, flags):
        return None

    def on_cuDriverGetVersion(self):
        return self.version

    def on_cuDeviceGetCount(self):
        return len(self.devices)

    def on_cuDeviceGetName(self, size, device):
        return self.devices[device].name.encode().ljust(size, b"\0")

    def on_cuDeviceGetPCIBusId(self, size, device):
        return f"0000:{device:02x}:00.0".encode().ljust(size, b"\0")

    def on_cuDeviceGetAttribute(self, attribute, device):
        known = self.devices[device]
        major, minor = known.capability
        return {75: major, 76: minor, 16: known.sm_count, 38: known.cache_bytes}[int(attribute)]

    def on_cuGetErrorName(self, code):
        return code.name.encode()

    def on_cuGetErrorString(self, code):
        return f"text of {int(code)}".encode()

    def on_cuDevicePrimaryCtxRetain(self, device):
        return 0x1000 + device

    def on_cuCtxPushCurrent(self, context):
        self.stack.append(int(context))

    def on_cuCtxPopCurrent(self):
        return self.stack.pop() if self.stack else (INVALID_CONTEXT, None)

    def on_cuCtxGetDevice(self):
        return self.stack[-1] - 0x1000 if self.stack else (INVALID_CONTEXT, None)

    def on_cuStreamGetCtx(self, stream):
        known = self.streams.get(int(stream))
        return (INVALID_HANDLE, None) if known is None else 0x1000 + known.device

    def on_cuStreamIsCapturing(self, stream):
        if not self.stack:
            return (INVALID_CONTEXT, None)
        known = self.streams.get(int(stream))
        return int(known.capturing) if known else 0

    def on_cuPointerGetAttribute(self, attribute, address):
        for base, (device, _, size) in self.memory.items():
            if base <= int(address) < base + size:
                return {2: 2, 9: device}[int(attribute)]
        return (INVALID_VALUE, None)

    def on_cuGetProcAddress(self, symbol, version, flags):
        address = ctypes.cast(self._entries[symbol], ctypes.c_void_p).value
        return (0, address, 0)

    def on_cuLibraryLoadData(self, image, *options):
        if self._capturing():
            return (UNSUPPORTED_IN_CAPTURE, None)
        handle = self._handle()
        self.images[handle] = bytes(image)
        return handle

    def on_cuLibraryGetKernel(self, library, name):
        handle = self._handle()
        self._kernels[handle] = (int(library), name.decode())
        return handle

    def on_cuLibraryUnload(self, library):
        return None if self.images.pop(int(library), None) else (INVALID_HANDLE, None)

    def on_cuKernelGetFunction(self, kernel):
        return int(kernel) + 1 if self.stack else (INVALID_CONTEXT, None)

    def on_cuKernelSetAttribute(self, attribute, value, kernel, device):
        self.attributes[int(kernel), int(device), int(attribute)] = value

    def on_cuTensorMapEncodeTiled(self, *arguments):
        if not self.stack:
            return (INVALID_CONTEXT, None)
        words = repr([[int(x) for x in a] if isinstance(a, list) else int(a) for a in arguments])
        opaque = ctypes.create_string_buffer(words.encode(), 128)
        return SimpleNamespace(getPtr=lambda: ctypes.addressof(opaque), keep=opaque)

    def on_cuMemAlloc(self, size):
        if not self.stack:
            return (INVALID_CONTEXT, None)
        return (
            (UNSUPPORTED_IN_CAPTURE, None)
            if self._capturing()
            else self.new_memory(size, self.stack[-1] - 0x1000)
        )

    def on_cuThreadExchangeStreamCaptureMode(self, mode):
        before = getattr(self._thread, "mode", 0)
        self._thread.mode = int(mode)
        return bindings.CUstreamCaptureMode(before)

    def on_cuMemFree(self, address):
        if self._capturing() and getattr(self._thread, "mode", 0) != 2:
            return (UNSUPPORTED_IN_CAPTURE, None)
        return None if self.memory.pop(int(address), None) else (INVALID_VALUE, None)

    def on_cuMemcpyHtoD(self, destination, source, size):
        ctypes.memmove(int(destination), int(source), size)

    def on_cuMemcpyDtoH(self, destination, source, size):
        ctypes.memmove(int(destination), int(source), size)

    def on_cuMemcpyDtoDAsync(self, destination, source, size, stream):
        ctypes.memmove(int(destination), int(source), size)

    def on_cuMemsetD8(self, address, value, count):
        ctypes.memset(int(address), value, count)

    def on_cuMemsetD8Async(self, address, value, count, stream):
        ctypes.memset(int(address), value, count)

    def on_cuStreamCreate(self, flags):
        return self.new_stream(self.stack[-1] - 0x1000) if self.stack else (INVALID_CONTEXT, None)

    def on_cuStreamDestroy(self, stream):
        del self.streams[int(stream)]

    def on_cuStreamSynchronize(self, stream):
        return (UNSUPPORTED_IN_CAPTURE, None) if self._capturing() else None

    def on_cuStreamBeginCapture(self, stream, mode):
        self.streams[int(stream)].capturing = True

    def on_cuStreamEndCapture(self, stream):
        self.streams[int(stream)].capturing = False
        return self._handle()

    def on_cuGraphInstantiate(self, graph, flags):
        return self._handle()

    def on_cuGraphLaunch(self, graph, stream):
        return None

    def on_cuGraphDestroy(self, graph):
        return None

    def on_cuGraphExecDestroy(self, graph):
        return None

    def on_cuEventCreate(self, flags):
        return self._handle()

    def on_cuEventDestroy(self, event):
        self._events.pop(int(event), None)

    def on_cuEventRecord(self, event, stream):
        self._events[int(event)] = int(stream)

    def on_cuEventSynchronize(self, event):
        return None

    def on_cuEventElapsedTime(self, start, end):
        return 1.0

    def on_cuStreamWaitEvent(self, stream, event, flags):
        self.waits.append((int(stream), self._events[int(event)]))

    # What is called by address.

    def _get_current(self, where: int) -> int:
        ctypes.c_void_p.from_address(where).value = self.stack[-1] if self.stack else None
        return 0

    def _stream_context(self, stream: int | None, where: int) -> int:
        code, context = _code_and(self.on_cuStreamGetCtx(stream or 0))
        ctypes.c_void_p.from_address(where).value = context
        return code

    def _is_capturing(self, stream: int | None, where: int) -> int:
        code, status = _code_and(self.on_cuStreamIsCapturing(stream or 0))
        ctypes.c_int.from_address(where).value = status or 0
        return code

    def _replace_address(self, where: int, address: int) -> int:
        """A map is the words that it was encoded from; the address is the third of them."""
        if self.answers.get("cuTensorMapReplaceAddress"):
            return self.answers["cuTensorMapReplaceAddress"]
        words = ctypes.string_at(where, 128).split(b", ")
        words[2] = str(address).encode()
        ctypes.memmove(where, b", ".join(words).ljust(128, b"\0")[:128], 128)
        return 0

    def _clusters(self, where: int, function: int, config_address: int) -> int:
        """A CTA takes a multiprocessor, and a cluster lies in one GPC."""
        if self.answers.get("cuOccupancyMaxActiveClusters"):
            return self.answers["cuOccupancyMaxActiveClusters"]
        if not self.stack or function - 1 not in self._kernels:
            return INVALID_CONTEXT if not self.stack else INVALID_HANDLE
        config = LaunchConfig.from_address(config_address)
        ctas = prod(_attributes(config)["cluster"])
        with self._lock:
            self.asked.append((ctas, prod(config.block), config.shared_bytes))
        device = self.stack[-1] - 0x1000
        granted = self.attributes.get((function - 1, device, 8), DEFAULT_SHARED_BYTES)
        if config.shared_bytes > granted:
            return INVALID_VALUE
        sm_count = self.devices[device].sm_count
        gpc = self.gpc or sm_count
        count = sm_count // gpc * (gpc // ctas)
        ctypes.c_int.from_address(where).value = count
        return 0

    def _launch(self, config_address: int, handle: int, parameters: int, _extra: int) -> int:
        if self.answers.get("cuLaunchKernelEx"):
            return self.answers["cuLaunchKernelEx"]
        config = LaunchConfig.from_address(config_address)
        stream = config.stream or 0
        known = self.streams.get(stream)
        if known is None and not self.stack:
            return INVALID_CONTEXT
        device = known.device if known else self.stack[-1] - 0x1000
        library, entry = self._kernels[handle]
        if library not in self.images:
            return INVALID_HANDLE
        granted = self.attributes.get((handle, device, 8), DEFAULT_SHARED_BYTES)
        if config.shared_bytes > granted:
            return INVALID_VALUE
        with self._lock:
            self.launches.append(
                Launched(
                    entry=entry,
                    device=device,
                    stream=stream,
                    grid=tuple(config.grid),
                    block=tuple(config.block),
                    shared_bytes=config.shared_bytes,
                    captured=bool(known and known.capturing),
                    parameters=self._parameters(entry, parameters),
                    **_attributes(config),
                )
            )
        return 0

    def _parameters(self, entry: str, address: int) -> tuple[bytes, ...]:
        slots = self.signatures.get(entry, ())
        pointers = (ctypes.c_void_p * len(slots)).from_address(address)
        pairs = zip(pointers, slots, strict=True)
        return tuple(ctypes.string_at(pointer, slot.size) for pointer, slot in pairs)


def _attributes(config: LaunchConfig) -> dict[str, object]:
    count = config.attribute_count
    listed = (LaunchAttribute * count).from_address(config.attributes) if count else ()
    by_number = {attribute.id: tuple(attribute.value) for attribute in listed}
    return {
        "cluster": by_number.get(4, (1, 1, 1))[:3],
        "programmatic": by_number.get(6, (0,))[0] == 1,
    }


def _code_and(answer):
    """A result code and its value, of what a call answers."""
    return answer if isinstance(answer, tuple) else (0, answer)
