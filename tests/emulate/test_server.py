"""What each request does, without a program."""

import struct

import numpy as np
import pytest

from kernelpack.emulate import arena, protocol
from kernelpack.emulate.expected import Expectation
from kernelpack.emulate.options import Options
from kernelpack.emulate.protocol import Operation, Payload, Status
from kernelpack.emulate.report import Log
from kernelpack.emulate.server import Server
from kernelpack.emulator.schedule import Schedule
from tests.emulate.images import SCALE

BAD_MAP = struct.pack("<6IQ2QQ2I2I", 9, 0, 0, 0, 0, 2, 0x7000_0000_0000, 64, 64, 100, 64, 8, 1, 1)
"""A map of 64 by 64 bf16 whose rows are 100 bytes apart: not a multiple of 16."""


class Client:
    """A program's view of a server: ask, get status and values."""

    def __init__(self, memory, **options):
        self.told, self.log = [], Log()
        self.server = Server(memory, Options(**options), self.told.append, self.log)

    def ask(self, operation, codes="", *values, tail=b""):
        status, raw = self.server.handle(
            operation, Payload(struct.pack("<" + codes, *values) + tail)
        )
        return status, Payload(raw)

    def allocate(self, size):
        (address,) = self.ask(Operation.ALLOCATE, "QI", size, 0)[1].take("Q")
        return address

    def kernel(self, text=SCALE, name="scale"):
        (module,) = self.ask(Operation.MODULE, tail=text.encode())[1].take("I")
        (kernel,) = self.ask(Operation.KERNEL, "I", module, tail=protocol.text(name))[1].take("I")
        return kernel

    def ask_to_launch(self, kernel, address, factor=2.0, threads=32, *, behind=False, stream=0):
        numbers = (kernel, 1, 1, 1, threads, 1, 1, 1, 1, 1, 0, behind, 0, stream)
        parameters = struct.pack("<Qf12x", address, factor)
        return self.ask(Operation.LAUNCH, "13IQ", *numbers, tail=parameters)[0]

    def launch(self, kernel, address, factor=2.0, threads=32):
        status = self.ask_to_launch(kernel, address, factor, threads)
        return status or self.settle()

    def settle(self):
        status, answer = self.ask(Operation.SETTLE)
        return status or Status(*answer.take("I"))


@pytest.fixture
def memory():
    with arena.shared(1 << 20) as shared:
        yield shared


@pytest.fixture
def client(memory):
    return Client(memory)


def test_hello(client, memory):
    """A program learns where device memory is and what the device can do."""
    status, payload = client.ask(Operation.HELLO)
    assert (status, payload.text()) == (Status.SUCCESS, str(memory.path))
    assert payload.take("QQ") == (memory.base, memory.size)
    assert payload.text() == "Emulated B200"
    (count,) = payload.take("I")
    assert dict([payload.take("ii") for _ in range(count)])[16] == 148


def test_a_launch(client, memory):
    """A kernel runs on the program's memory with the parameters as the program packed them."""
    address = client.allocate(128)
    memory.memory.write(address, np.arange(32, dtype=np.float32).view(np.uint8))
    assert client.launch(client.kernel(), address) is Status.SUCCESS
    after = memory.memory.read(address, 128).view(np.float32)
    assert after.tolist() == [2.0 * lane for lane in range(32)]
    (launch,) = client.log.launches
    assert (launch.kernel, launch.block, launch.troubles) == ("scale", (32, 1, 1), ())


def test_a_kernel_has_its_parameters(client):
    """The stand-in learns where each argument goes, and how large it is."""
    client.kernel()
    payload = client.ask(Operation.KERNEL, "I", 0, tail=protocol.text("scale"))[1]
    assert payload.take("IIIII") == (1, 24, 0, 1024, 3)
    assert payload.take("6I") == (0, 8, 8, 4, 12, 12)


def test_variables_live_between_launches(client, memory):
    """A `__device__` variable keeps what a launch left in it."""
    kernel, address = client.kernel(), client.allocate(128)
    memory.mark(address, 128)
    client.launch(kernel, address)
    client.launch(kernel, address)
    where, size = client.ask(Operation.SYMBOL, "I", 0, tail=protocol.text("calls"))[1].take("QQ")
    assert memory.memory.read(where, size).view(np.uint32)[0] == 9


def test_a_finding_is_told(client):
    """What a kernel does wrong is reported and kept; the launch goes on."""
    assert client.launch(client.kernel(), client.allocate(128)) is Status.SUCCESS
    (trouble,) = client.log.launches[0].troubles
    assert trouble.rule == "uninitialised"
    assert any("uninitialised" in line for line in client.told)


def test_an_expected_finding(memory):
    """A finding that the options list carries the reason."""
    client = Client(memory, expected=(Expectation(rule="uninitialised", reason="on purpose"),))
    client.launch(client.kernel(), client.allocate(128))
    assert client.log.launches[0].troubles[0].expected == "on purpose"


def test_kernels_that_are_not_on_trial(memory):
    """A kernel whose name does not match runs unchecked."""
    client = Client(memory, kernels="*gemm*")
    client.launch(client.kernel(), client.allocate(128))
    assert client.log.launches[0].troubles == ()


def test_a_fault_ends_a_launch(client):
    """A launch that cannot go on fails; the record says why."""
    text = SCALE.replace("ret;", "trap;")
    address = client.allocate(128)
    client.server.arena.mark(address, 128)
    assert client.launch(client.kernel(text), address) is Status.LAUNCH_FAILED
    assert client.log.launches[0].troubles[-1].rule == "trap"


def test_an_instruction_that_is_not_modelled(client):
    """A kernel that the emulator cannot run fails, and nothing is approximated."""
    text = SCALE.replace("ret;", "vadd4.u32.u32.u32 %r1, %r1, %r1, %r1; ret;")
    assert client.launch(client.kernel(text), client.allocate(128)) is Status.LAUNCH_FAILED


@pytest.mark.parametrize(
    ("operation", "raw", "status"),
    [
        (Operation.WRITE, struct.pack("<QQ", 0, 8), Status.INVALID_VALUE),
        (Operation.READ, struct.pack("<QQ", 2**63, 8), Status.INVALID_VALUE),
        (Operation.RELEASE, struct.pack("<Q", 5), Status.INVALID_VALUE),
        (Operation.ALLOCATE, struct.pack("<QI", 2**40, 0), Status.OUT_OF_MEMORY),
        (Operation.MODULE, b"\x7fELF", Status.NOT_SUPPORTED),
        (Operation.MODULE, b".target sm_100a\nnonsense;", Status.INVALID_IMAGE),
        (Operation.REFUSE, protocol.text("cuTensorMapEncodeIm2col"), Status.NOT_SUPPORTED),
        (Operation.TENSOR_MAP, BAD_MAP, Status.INVALID_VALUE),
        (Operation.TENSOR_MAP, struct.pack("<I", 99) + BAD_MAP[4:], Status.INVALID_VALUE),
        (Operation.KERNEL, struct.pack("<I", 77) + protocol.text("k"), Status.INVALID_HANDLE),
        (Operation.SYMBOL, struct.pack("<I", 77) + protocol.text("x"), Status.INVALID_HANDLE),
        (Operation.LAUNCH, struct.pack("<12I", 77, *[1] * 11), Status.INVALID_HANDLE),
        (Operation.COMPLAIN, protocol.text("a null pointer"), Status.INVALID_VALUE),
    ],
    ids=lambda value: value.name if isinstance(value, Operation) else "",
)
def test_a_request_that_cannot_be_served(client, operation, raw, status):
    """The program gets CUDA's status, and the reason is reported and counted."""
    assert client.ask(operation, tail=raw)[0] is status
    assert client.told[-1].startswith("error: ")
    assert len(client.log.errors) + len(client.log.refused) == 1


@pytest.mark.parametrize("operation", [Operation.KERNEL, Operation.SYMBOL])
def test_an_unknown_name(client, operation):
    """A name that a module lacks and an invalid module have errors of their own."""
    client.kernel()
    status, _ = client.ask(operation, "I", 0, tail=protocol.text("nothing"))
    assert status is Status.NOT_FOUND


def test_an_expected_error(memory):
    """An error that the options list does not count."""
    client = Client(memory, expected=(Expectation(rule="problem", reason="it probes"),))
    client.ask(Operation.RELEASE, "Q", 5)
    assert [error.expected for error in client.log.errors] == ["it probes"]


@pytest.mark.parametrize(
    ("offset", "status"),
    [(64, Status.ILLEGAL_ADDRESS), (-(2**46), Status.ILLEGAL_ADDRESS), (0, Status.SUCCESS)],
)
def test_an_address_outside(client, offset, status):
    """A launch that reads or writes outside every allocation fails, though it runs to its end."""
    address = client.allocate(128)
    client.server.arena.mark(address, 128)
    assert client.launch(client.kernel(), address + offset) is status


def test_a_misaligned_address(client):
    """A launch with a misaligned access fails as on a GPU."""
    assert client.launch(client.kernel(), client.allocate(256) + 2) is Status.MISALIGNED_ADDRESS


def test_an_expected_address(memory):
    """A finding that is let pass does not fail the launch."""
    client = Client(memory, expected=(Expectation(rule="bounds", reason="on purpose"),))
    assert client.launch(client.kernel(), client.allocate(128) + 64) is Status.SUCCESS


@pytest.mark.parametrize(
    ("kernels", "name", "ran"),
    [
        ("*", "starving:0:0", ("starving:0:0", True)),
        ("*", "starving:5:5", ("lazy", True)),
        ("*gemm*", "starving:0:0", ("eager", False)),
    ],
)
def test_the_schedule_of_a_launch(memory, kernels, name, ran):
    """A launch says what it ran under: not the schedule of a warp that it lacks."""
    client = Client(memory, kernels=kernels, schedule=Schedule.parse(name))
    client.launch(client.kernel(), client.allocate(128))
    (launch,) = client.log.launches
    assert (launch.schedule, launch.on_trial) == ran


def test_a_native_kernel(memory):
    """A function may do a kernel's work: it is reported, and counts no instructions."""
    seen = []
    natives = {"sc*": lambda arena, parameters: seen.append((arena, parameters[:8]))}
    client = Client(memory, natives=natives)
    address = client.allocate(128)
    assert client.launch(client.kernel(), address) is Status.SUCCESS
    assert seen == [(memory, struct.pack("<Q", address))]
    assert (client.log.launches[0].steps, client.told[0]) == (0, "scale: computed natively")
