"""The CUDA driver: the one place that imports cuda.bindings, and only when a program connects.

Every error of the driver becomes a `DriverError` that names the call, the code and the driver's
own text. Handles and device addresses are plain integers on this side of the door.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from os import getpid, register_at_fork
from typing import Any
from weakref import ReferenceType, ref

from kernelpack.errors import CaptureError, DeviceMemoryError, DriverError, ForkError
from kernelpack.spec.arch import Capability

LEGACY_STREAM, LEGACY_STREAM_HANDLE, PER_THREAD_STREAM = 0, 1, 2
DEFAULT_STREAMS = frozenset((LEGACY_STREAM, LEGACY_STREAM_HANDLE, PER_THREAD_STREAM))
"""Stream handles that belong to no device: they mean the context that is current."""

_FIRST = "cuInit"  # without libcuda, the call that fails

# CUDA driver API, CUresult
INVALID_VALUE, OUT_OF_MEMORY, DEINITIALIZED, NOT_FOUND = 1, 2, 4, 500
CAPTURE_ERRORS = range(900, 909)
CAPTURE_IMPLICIT = 906
# CUDA driver API, CUdevice_attribute and CUpointer_attribute
_SM_COUNT, _L2_BYTES, _MAJOR, _MINOR = 16, 38, 75, 76
_POINTER_DEVICE, _POINTER_KIND = 9, 2
_KIND_HOST = 1
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_ENTRY_VERSION = 12_000  # the interface version asked of cuGetProcAddress
_ENTRY_LEGACY_STREAM = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU as the driver describes it."""

    ordinal: int
    name: str
    capability: Capability
    sm_count: int

    def __str__(self) -> str:
        major, minor = self.capability
        return f"device {self.ordinal} ({self.name}, compute capability {major}.{minor})"


class Driver:
    """libcuda, initialised. Shared by threads; of no use after a fork.

    Args:
        api: the module `cuda.bindings.driver`, or what a test puts in its place.

    Attributes:
        process: the process that connected.
        is_forked: whether this is a child of it.

    Raises:
        DriverError: there is no driver, or it refuses to start.

    """

    def __init__(self, api: Any) -> None:  # noqa: ANN401 - untyped module
        self.api = api
        self.process, self.is_forked = getpid(), False
        register_at_fork(after_in_child=partial(_mark_forked, ref(self)))
        self._contexts: dict[int, int] = {}
        self._devices: dict[int, Device] = {}
        self.call(_FIRST, 0)
        self.version = int(self.call("cuDriverGetVersion"))  # 1000 * major + 10 * minor

    def __str__(self) -> str:
        return f"driver of CUDA {self.version // 1000}.{self.version % 1000 // 10}"

    def attempt(self, name: str, *arguments: object) -> tuple[int, Any]:
        """Call the driver: its result code, and the value it gave (a tuple, where several)."""
        self.check_process()
        try:
            code, *values = getattr(self.api, name)(*arguments)
        except RuntimeError as error:  # cuda.bindings found no libcuda, or no such function in it
            raise (_no_driver() if name == _FIRST else _old_driver(name)) from error
        return int(code), values[0] if len(values) == 1 else tuple(values)

    def call(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 - as the binding gives
        """Call the driver and return what it gives; its error becomes a `DriverError`."""
        code, value = self.attempt(name, *arguments)
        if code:
            raise self.error(name, code)
        return value

    def error(self, name: str, code: int) -> DriverError:
        """The error of a call that answered `code`.

        A `CaptureError` where a capture forbids it, a `DeviceMemoryError` on a full device.
        """
        label = self._text("cuGetErrorName", code)
        what = f"{label} ({code}): {self._text('cuGetErrorString', code)}"
        if code in CAPTURE_ERRORS:
            hint = "call `library.preload(...)` before the capture begins"
            return CaptureError(what, where=name, hint=hint)
        kind = DeviceMemoryError if code == OUT_OF_MEMORY else DriverError
        return kind(what, where=name)

    def _text(self, name: str, code: int) -> str:
        try:
            failed, text = getattr(self.api, name)(self.api.CUresult(code))
        except ValueError:  # a code that is newer than the bindings
            return "unknown error"
        return "unknown error" if int(failed) or not text else text.decode()

    def check_process(self) -> None:
        """Refuse to work in a child of the process that connected: CUDA does not survive a fork."""
        if self.is_forked:
            raise fork_error(self.process)

    def entry(self, name: str) -> int:
        """The address of a function of libcuda itself, for calls that must be cheap."""
        found = self.call("cuGetProcAddress", name.encode(), _ENTRY_VERSION, _ENTRY_LEGACY_STREAM)
        return int(found[0])

    def device_count(self) -> int:
        """How many GPUs this process sees."""
        return int(self.call("cuDeviceGetCount"))

    def device(self, ordinal: int) -> Device:
        """The facts of a GPU; asked once."""
        if ordinal not in self._devices:
            self._devices[ordinal] = Device(
                ordinal=ordinal,
                name=self._device_name(ordinal),
                capability=(self._attribute(ordinal, _MAJOR), self._attribute(ordinal, _MINOR)),
                sm_count=self._attribute(ordinal, _SM_COUNT),
            )
        return self._devices[ordinal]

    def _device_name(self, ordinal: int) -> str:
        name: bytes = self.call("cuDeviceGetName", 256, ordinal)
        return name.split(b"\0")[0].decode()

    def _attribute(self, ordinal: int, attribute: int) -> int:
        kind = self.api.CUdevice_attribute(attribute)
        return int(self.call("cuDeviceGetAttribute", kind, ordinal))

    def cache_bytes(self, ordinal: int) -> int:
        """The size of a GPU's L2 cache."""
        return self._attribute(ordinal, _L2_BYTES)

    def bus_id(self, ordinal: int) -> str:
        """Where a GPU is plugged in, by which other libraries of NVIDIA's know it."""
        name: bytes = self.call("cuDeviceGetPCIBusId", 32, ordinal)
        return name.split(b"\0")[0].decode()

    def context(self, ordinal: int) -> int:
        """The primary context of a device, which frameworks share; retained once, never released.

        Two threads may both retain it: the driver counts, and the handle is the same.
        """
        if ordinal not in self._contexts:
            self._contexts[ordinal] = int(self.call("cuDevicePrimaryCtxRetain", ordinal))
        return self._contexts[ordinal]

    @contextmanager
    def current(self, ordinal: int) -> Iterator[None]:
        """Make a device current for the calling thread; what was current before is put back."""
        self.call("cuCtxPushCurrent", self.context(ordinal))
        with self.afterwards("cuCtxPopCurrent"):
            yield

    @contextmanager
    def afterwards(self, name: str, *arguments: object) -> Iterator[None]:
        """Call the driver when the block ends, however it ends; the first error is reported."""
        try:
            yield
        except BaseException:
            with suppress(DriverError):
                self.attempt(name, *arguments)
            raise
        self.call(name, *arguments)

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """Let the thread do what a capture forbids; its capture mode is put back."""
        exchange = "cuThreadExchangeStreamCaptureMode"
        with self.afterwards(exchange, self.call(exchange, self.api.CUstreamCaptureMode(_RELAXED))):
            yield

    def stream_device(self, stream: int) -> int | None:
        """The device a stream belongs to; None for the default streams, which belong to none."""
        if stream in DEFAULT_STREAMS:
            return None
        self.call("cuCtxPushCurrent", self.call("cuStreamGetCtx", stream))
        with self.afterwards("cuCtxPopCurrent"):
            return int(self.call("cuCtxGetDevice"))

    def is_capturing(self, stream: int, ordinal: int) -> bool:
        """Whether work given to a stream is recorded into a graph (or refused because of one)."""
        with self.current(ordinal):
            code, status = self.attempt("cuStreamIsCapturing", stream)
        if code not in (0, CAPTURE_IMPLICIT):
            raise self.error("cuStreamIsCapturing", code)
        return code == CAPTURE_IMPLICIT or bool(int(status))

    def pointer_device(self, address: int) -> int | None:
        """The device whose memory an address lies in; None for host memory and unknown addresses.

        Managed memory counts as the device that the driver gives for it.
        """
        kind = self._pointer_attribute(_POINTER_KIND, address)
        if kind is None or kind == _KIND_HOST:
            return None
        return self._pointer_attribute(_POINTER_DEVICE, address)

    def _pointer_attribute(self, attribute: int, address: int) -> int | None:
        kind = self.api.CUpointer_attribute(attribute)
        code, value = self.attempt("cuPointerGetAttribute", kind, address)
        if code not in (0, INVALID_VALUE):
            raise self.error("cuPointerGetAttribute", code)
        return None if code else int(value)


def connect() -> Driver:
    """Open and initialise libcuda through cuda.bindings.

    Raises:
        DriverError: cuda.bindings or libcuda is missing, or the driver refuses to start.

    """
    try:
        api = import_module("cuda.bindings.driver")
    except ImportError as error:
        hint = "pip install 'cuda-python>=12.9,<14'"
        raise DriverError(f"cuda.bindings cannot be imported: {error}", hint=hint) from error
    return Driver(api)


def _no_driver() -> DriverError:
    hint = "install an NVIDIA driver; `kernelpack.ops.EmulatedLibrary(path)` needs none and no GPU"
    return DriverError("libcuda, the NVIDIA driver's library, is not there", hint=hint)


def _old_driver(name: str) -> DriverError:
    hint = "install a newer NVIDIA driver"
    return DriverError(
        "libcuda, the NVIDIA driver's library, lacks this call", where=name, hint=hint
    )


def _mark_forked(parent: ReferenceType[Driver]) -> None:
    """A flag, because a launch looks at it, and to ask the system costs as much as to launch."""
    if driver := parent():
        driver.is_forked = True


def fork_error(process: int) -> ForkError:
    """The error of a child process that uses what its parent connected."""
    return ForkError(
        f"process {process} connected to the driver, this one was forked from it",
        hint="load the bundle after the fork, or start processes with `spawn`",
    )
