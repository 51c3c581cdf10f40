"""The emulator's end of the wire: what each request of a host program does.

An error is reported as it happens, with its words. The program gets the CUDA status that a GPU's
driver would give, and the run counts as failed.
"""

import socket
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

from kernelpack.emulate import expected, protocol
from kernelpack.emulate.arena import Arena
from kernelpack.emulate.launcher import Asked, Launcher
from kernelpack.emulate.modules import HandleError, Modules, UnknownNameError
from kernelpack.emulate.options import Options
from kernelpack.emulate.protocol import Operation, Payload, Status
from kernelpack.emulate.queue import Queue
from kernelpack.emulate.report import Log, of_error
from kernelpack.emulator.faults import EmulationError, PtxError, UnsupportedError
from kernelpack.emulator.machine import tensor_map
from kernelpack.errors import KernelpackError, ProblemError, TensorMapError
from kernelpack.spec.launch import Dim3, Plan
from kernelpack.spec.tensormap import (
    Element,
    Fill,
    Interleave,
    Promotion,
    Swizzle,
    TensorMap,
    check,
)

_Number = TypeVar("_Number", bound=IntEnum)

_STATUS: tuple[tuple[type[KernelpackError], Status], ...] = (
    (UnsupportedError, Status.NOT_SUPPORTED),
    (PtxError, Status.INVALID_IMAGE),
    (TensorMapError, Status.INVALID_VALUE),
    (UnknownNameError, Status.NOT_FOUND),
    (HandleError, Status.INVALID_HANDLE),
    (ProblemError, Status.INVALID_VALUE),
    (EmulationError, Status.OUT_OF_MEMORY),
)
"""The status that a program gets for an error of ours; launches have their own rule."""


_BEHIND_LAUNCHES = frozenset(
    (
        Operation.SETTLE,
        Operation.RELEASE,
        Operation.WRITE,
        Operation.READ,
        Operation.COPY,
        Operation.FILL,
    )
)
"""Requests that come after launches asked for before them."""


class Server:
    """Serves one program while it `is_wanted`; their outcomes go into the log."""

    def __init__(
        self,
        arena: Arena,
        options: Options,
        tell: Callable[[str], None],
        log: Log,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self.arena, self.options, self.tell, self.log = arena, options, tell, log
        self.modules = Modules(arena, options.device.capability, options.text_of)
        self.queue = Queue(Launcher(arena, options, tell, is_wanted), log)
        self._handlers: dict[Operation, Callable[[Payload], bytes]] = {
            Operation.HELLO: self._hello,
            Operation.MODULE: self._module,
            Operation.KERNEL: self._kernel,
            Operation.LAUNCH: self._launch,
            Operation.ALLOCATE: self._allocate,
            Operation.RELEASE: self._release,
            Operation.WRITE: self._write,
            Operation.READ: self._read,
            Operation.COPY: self._copy,
            Operation.FILL: self._fill,
            Operation.SYMBOL: self._symbol,
            Operation.TENSOR_MAP: self._tensor_map,
            Operation.REFUSE: self._refuse,
            Operation.COMPLAIN: self._complain,
            Operation.TOUCH: self._touch,
            Operation.SETTLE: self._settle,
        }

    def serve(self, connection: socket.socket) -> bool:
        """Answer a program's next request; whether the program is still there."""
        request = protocol.receive(connection)
        if request is None:
            self.queue.run()
            return False
        operation, payload = request
        if protocol.answer(connection, *self.handle(operation, payload)):
            return True
        self.tell(f"the program ended while the emulator did its `{operation.name.lower()}`")
        return False

    def handle(self, operation: Operation, payload: Payload) -> tuple[Status, bytes]:
        """Do what a request asks for; the status and payload of its answer."""
        try:
            if operation in _BEHIND_LAUNCHES:
                self.queue.run()
            return Status.SUCCESS, self._handlers[operation](payload)
        except KernelpackError as error:
            self._note(error)
            return next((s for kind, s in _STATUS if isinstance(error, kind)), _STATUS[0][1]), b""

    def _note(self, error: KernelpackError) -> None:
        """Report an error, and count it."""
        self.tell(f"error: {error}")
        if isinstance(error, UnsupportedError | PtxError):
            self.log.refused.append(str(error))
        else:
            options, trouble = self.options, of_error(error)
            self.log.errors.append(expected.judge(trouble, options.expected, options.schedule.name))

    # -- the device and its memory ----------------------------------------------------------

    def _hello(self, _payload: Payload) -> bytes:
        device, arena = self.options.device, self.arena
        attributes = b"".join(struct.pack("<ii", *item) for item in device.attributes.items())
        return b"".join(
            (
                protocol.text(str(arena.path)),
                struct.pack("<QQ", arena.base, arena.size),
                protocol.text(device.name),
                struct.pack("<I", len(device.attributes)),
                attributes,
            )
        )

    def _allocate(self, payload: Payload) -> bytes:
        size, managed = payload.take("QI")
        return struct.pack("<Q", self.arena.allocate(size, managed=bool(managed)))

    def _release(self, payload: Payload) -> bytes:
        self.arena.release(*payload.take("Q"))
        return b""

    def _write(self, payload: Payload) -> bytes:
        self.arena.mark(*payload.take("QQ"))
        return b""

    def _read(self, payload: Payload) -> bytes:
        self.arena.hold(*payload.take("QQ"))
        return b""

    def _copy(self, payload: Payload) -> bytes:
        self.arena.copy(*payload.take("QQQ"))
        return b""

    def _fill(self, payload: Payload) -> bytes:
        self.arena.fill(*payload.take("QIIQ"))
        return b""

    # -- modules ----------------------------------------------------------------------------

    def _module(self, payload: Payload) -> bytes:
        return struct.pack("<I", self.modules.load(payload.rest()))

    def _kernel(self, payload: Payload) -> bytes:
        (module,) = payload.take("I")
        number = self.modules.find(module, payload.text())
        kernel = self.modules.kernels[number]
        parameters = kernel.entry.parameters
        head = struct.pack(
            "<IIIII",
            number,
            kernel.entry.parameter_bytes,
            kernel.shared_bytes,
            kernel.most_threads,
            len(parameters),
        )
        return head + b"".join(struct.pack("<II", p.offset, p.size) for p in parameters)

    def _symbol(self, payload: Payload) -> bytes:
        (module,) = payload.take("I")
        return struct.pack("<QQ", *self.modules.module(module).variable(payload.text()))

    def _tensor_map(self, payload: Payload) -> bytes:
        element, interleave, swizzle, promotion, fill, rank = payload.take("IIIIII")
        (address,) = payload.take("Q")
        tensor = TensorMap(
            name=f"map of {address:#x}",
            element=_member(Element, element),
            address=address,
            dims=payload.take(f"{rank}Q"),
            strides_bytes=payload.take(f"{rank - 1}Q"),
            box=payload.take(f"{rank}I"),
            element_strides=payload.take(f"{rank}I"),
            swizzle=_member(Swizzle, swizzle),
            interleave=_member(Interleave, interleave),
            fill=_member(Fill, fill),
            promotion=_member(Promotion, promotion),
        )
        check(tensor)
        return tensor_map.encode(tensor)

    def _refuse(self, payload: Payload) -> bytes:
        raise UnsupportedError(f"{payload.text()} is not modelled")

    def _complain(self, payload: Payload) -> bytes:
        raise ProblemError(payload.text())

    def _touch(self, payload: Payload) -> bytes:
        address, writes = payload.take("QI")
        near = self.arena.memory.describe(address - self.arena.base)
        raise ProblemError(
            f"the host {'writes to' if writes else 'reads'} device memory at {address:#x}: {near}",
            hint="a GPU's host gets SIGSEGV; copy with cudaMemcpy, or use cudaMallocManaged",
        )

    # -- launches ---------------------------------------------------------------------------

    def _launch(self, payload: Payload) -> bytes:
        kernel = self.modules.kernel(*payload.take("I"))
        grid, block, cluster = (payload.take("III") for _ in range(3))
        shared_bytes, programmatic, cooperative = payload.take("III")
        (stream,) = payload.take("Q")
        plan = Plan(
            entry=kernel.entry.name,
            grid=Dim3(*grid),
            block=Dim3(*block),
            cluster=Dim3(*cluster),
            shared_bytes=shared_bytes,
            programmatic=bool(programmatic),
        )
        self.queue.add(
            Asked(
                kernel=kernel,
                plan=plan,
                parameters=payload.rest(),
                stream=stream,
                cooperative=bool(cooperative),
            )
        )
        if not self.modules.has_dependents:
            self.queue.run()
        return b""

    def _settle(self, _payload: Payload) -> bytes:
        return struct.pack("<I", self.queue.told())


def _member(kind: type[_Number], number: int) -> _Number:
    try:
        return kind(number)
    except ValueError:
        raise TensorMapError(f"no {kind.__name__.lower()} has the number {number}") from None
