"""A stand-in for libcuda behind `cuda.bindings.driver`: records calls, answers what a test sets.

Contexts are kept for each thread, device memory is host memory, and a launch is decoded from the
structures that the real driver would read. It refuses what the real one refuses: work without a
current context, a capture, shared memory above 48 KiB that was not asked for.
"""

import ctypes
from dataclasses import dataclass
from math import prod

from cuda.bindings import driver as bindings

from kernelpack.runtime.launch import LaunchAttribute, LaunchConfig
from tests.fakes.calls import INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE, FakeCalls
from tests.fakes.gpus import FakeDevice, Launched

__all__ = ["FakeCuda", "FakeDevice"]

DEFAULT_SHARED_BYTES = 48 * 1024


@dataclass
class FakeCuda(FakeCalls):
    """The binding module's face."""

    def __post_init__(self) -> None:
        super().__post_init__()
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

    def _answer(self, name: str, arguments: tuple) -> tuple:
        with self._lock:
            self.calls.append(name)
        if self.answers.get(name):
            return (self.answers[name], None)
        result = getattr(self, f"on_{name}")(*arguments)
        return result if isinstance(result, tuple) else (0, result)

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
