# ruff: noqa: N802 - the calls are spelt as CUDA spells them
"""What a kernelpack program calls of libcuda, as the bindings spell it."""

import ctypes
from dataclasses import dataclass
from types import SimpleNamespace

from cuda.bindings import driver as bindings

from tests.fakes.gpus import FakeGpus

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND = 1, 201, 400, 500
UNSUPPORTED_IN_CAPTURE = 900


@dataclass
class FakeCalls(FakeGpus):
    """The calls: each gives a code and a value, or the value alone where all went well."""

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
