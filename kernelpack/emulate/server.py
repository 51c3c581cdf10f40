"""The emulator's end of the wire: what each request of a host program does.

An error is told as it happens, with its words; the program gets CUDA's status for it, as a GPU's
driver would give, and the run counts as failed.
"""

import socket
import struct
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase

from kernelpack.emulate import expected, protocol
from kernelpack.emulate.arena import Arena
from kernelpack.emulate.modules import Kernel, Modules
from kernelpack.emulate.options import Options
from kernelpack.emulate.protocol import Operation, Payload, Status
from kernelpack.emulate.report import Launch, of_error, of_finding
from kernelpack.emulator.checks import ALL
from kernelpack.emulator.faults import EmulationError, PtxError, UnsupportedError
from kernelpack.emulator.machine import tensor_map
from kernelpack.emulator.run import Result, run
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

_STATUS: tuple[tuple[type[KernelpackError], Status], ...] = (
    (UnsupportedError, Status.NOT_SUPPORTED),
    (PtxError, Status.INVALID_IMAGE),
    (TensorMapError, Status.INVALID_VALUE),
    (ProblemError, Status.INVALID_VALUE),
    (EmulationError, Status.OUT_OF_MEMORY),
)
"""What a program is answered for an error of ours; launches have their own rule."""

_NOTHING = Result(findings=(), error=None, steps=0, operations=0, seconds=0.0)


class Server:
    """Serves one program. `launches` and `refused` grow as it runs."""

    def __init__(self, arena: Arena, options: Options, tell: Callable[[str], None]) -> None:
        self.arena, self.options, self.tell = arena, options, tell
        self.modules = Modules(arena, options.device.capability)
        self.launches: list[Launch] = []
        self.refused: list[str] = []
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
        }

    def serve(self, connection: socket.socket) -> None:
        """Answer a program's requests until it ends."""
        while (request := protocol.receive(connection)) is not None:
            protocol.answer(connection, *self.handle(*request))

    def handle(self, operation: Operation, payload: Payload) -> tuple[Status, bytes]:
        """Do what a request asks for; the status and payload of its answer."""
        try:
            return Status.SUCCESS, self._handlers[operation](payload)
        except LaunchFailed:
            return Status.LAUNCH_FAILED, b""
        except KernelpackError as error:
            self.tell(f"error: {error}")
            if isinstance(error, UnsupportedError | PtxError):
                self.refused.append(str(error))
            return next((s for kind, s in _STATUS if isinstance(error, kind)), _STATUS[0][1]), b""

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
        return struct.pack("<QQ", *self.modules.modules[module].variable(payload.text()))

    def _tensor_map(self, payload: Payload) -> bytes:
        element, interleave, swizzle, promotion, fill, rank = payload.take("IIIIII")
        (address,) = payload.take("Q")
        tensor = TensorMap(
            name=f"map of {address:#x}",
            element=Element(element),
            address=address,
            dims=payload.take(f"{rank}Q"),
            strides_bytes=payload.take(f"{rank - 1}Q"),
            box=payload.take(f"{rank}I"),
            element_strides=payload.take(f"{rank}I"),
            swizzle=Swizzle(swizzle),
            interleave=Interleave(interleave),
            fill=Fill(fill),
            promotion=Promotion(promotion),
        )
        check(tensor)
        return tensor_map.encode(tensor)

    def _refuse(self, payload: Payload) -> bytes:
        raise UnsupportedError(f"{payload.text()} is not modelled")

    # -- launches ---------------------------------------------------------------------------

    def _launch(self, payload: Payload) -> bytes:
        (number,) = payload.take("I")
        grid, block, cluster = (payload.take("III") for _ in range(3))
        shared_bytes, programmatic = payload.take("II")
        kernel = self.modules.kernels[number]
        plan = Plan(
            entry=kernel.entry.name,
            grid=Dim3(*grid),
            block=Dim3(*block),
            cluster=Dim3(*cluster),
            shared_bytes=shared_bytes,
            programmatic=bool(programmatic),
        )
        launch, failed = self._run(kernel, plan, payload.rest())
        self.launches.append(launch)
        self._tell_of(launch)
        if failed:
            raise LaunchFailed
        return b""

    def _run(self, kernel: Kernel, plan: Plan, parameters: bytes) -> tuple[Launch, bool]:
        """Run a launch; its record, and whether it ended before its end."""
        try:
            result = self._native(plan, parameters) or self._result(kernel, plan, parameters)
        except KernelpackError as error:
            return self._record(plan, _NOTHING, error), True
        for line in result.printed:
            sys.stdout.write(line)
        sys.stdout.flush()
        return self._record(plan, result, result.error), result.error is not None

    def _native(self, plan: Plan, parameters: bytes) -> Result | None:
        """Let a function do a kernel's work, if the options give one for it."""
        for pattern, native in self.options.natives.items():
            if fnmatchcase(plan.entry, pattern):
                self.tell(f"{plan.entry}: computed natively")
                native(self.arena, parameters)
                return _NOTHING
        return None

    def _result(self, kernel: Kernel, plan: Plan, parameters: bytes) -> Result:
        options = self.options
        judged = fnmatchcase(plan.entry, options.kernels)
        return run(
            kernel.module.program,
            plan,
            self.arena.memory,
            parameters=parameters,
            addresses=kernel.module.addresses,
            checks=ALL if judged else (),
            schedule=options.schedule if judged else "eager",
            seed=options.seed,
            level=options.level,
            step_limit=options.step_limit,
        )

    def _record(self, plan: Plan, result: Result, error: KernelpackError | None) -> Launch:
        problems = [of_finding(finding, plan.entry) for finding in result.findings]
        problems += [of_error(error, plan.entry)] if error else []
        expectations, schedule = self.options.expected, self.options.schedule
        return Launch(
            kernel=plan.entry,
            grid=(plan.grid.x, plan.grid.y, plan.grid.z),
            block=(plan.block.x, plan.block.y, plan.block.z),
            cluster=(plan.cluster.x, plan.cluster.y, plan.cluster.z),
            shared_bytes=plan.shared_bytes,
            steps=result.steps,
            seconds=result.seconds,
            problems=tuple(expected.judge(p, expectations, schedule) for p in problems),
        )

    def _tell_of(self, launch: Launch) -> None:
        self.tell(str(launch))
        for problem in launch.problems:
            known = f" (expected: {problem.expected})" if problem.expected else ""
            self.tell(f"  {problem.level.name.lower()}: {problem.text}{known}")


class LaunchFailed(Exception):  # noqa: N818 - a turn of events, told already
    """A launch ended before its end."""
