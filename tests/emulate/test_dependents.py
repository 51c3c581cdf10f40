"""Launches of two kernels that may overlap: programmatic dependents (PTX ISA 9.7.13.13)."""

import struct

import numpy as np
import pytest

from kernelpack.emulate import arena, queue
from kernelpack.emulate.protocol import Operation, Status
from kernelpack.emulator.faults import Level
from kernelpack.emulator.schedule import Schedule
from tests.emulate.test_server import Client

KERNELS = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry _Z5firstPj(.param .u64 data)
{{
    .reg .b64 %a; .reg .b32 %r<4>;
    ld.param.u64 %a, [data]; mov.u32 %r1, %tid.x; mad.wide.u32 %a, %r1, 4, %a;
    griddepcontrol.launch_dependents;
    st.global.u32 [%a], %r1;
    ret;
}}
.visible .entry _Z6secondPj(.param .u64 data)
{{
    .reg .b64 %a; .reg .b32 %r<4>;
    ld.param.u64 %a, [data]; mov.u32 %r1, %tid.x; mad.wide.u32 %a, %r1, 4, %a;
    {before} ld.global.u32 %r2, [%a]; {after}
    add.u32 %r2, %r2, 1; st.global.u32 [%a], %r2;
    ret;
}}
.visible .entry other(.param .u64 data) {{ {trap} ret; }}
"""
WAIT = "griddepcontrol.wait;"


@pytest.fixture
def memory():
    with arena.shared(1 << 20) as shared:
        yield shared


class Program:
    """The kernels, and memory that both use."""

    def __init__(self, memory, *, before="", after="", trap="", **options):
        self.client, self.memory = Client(memory, **options), memory
        text = KERNELS.format(before=before, after=after, trap=trap)
        (module,) = self.client.ask(Operation.MODULE, tail=text.encode())[1].take("I")
        self.numbers = {
            name: self.client.ask(
                Operation.KERNEL, "I", module, tail=struct.pack("<I", len(name)) + name.encode()
            )[1].take("I")[0]
            for name in ("_Z5firstPj", "_Z6secondPj", "other")
        }
        self.data = self.client.allocate(128)
        memory.mark(self.data, 128)

    def launch(self, name, *, behind=False, stream=0, cooperative=False):
        numbers = (self.numbers[name], 1, 1, 1, 32, 1, 1, 1, 1, 1, 0, behind, cooperative, stream)
        raw = struct.pack("<Q", self.data)
        assert self.client.ask(Operation.LAUNCH, "13IQ", *numbers, tail=raw)[0] is Status.SUCCESS

    def pair(self, **second):
        self.launch("_Z5firstPj")
        self.launch("_Z6secondPj", behind=True, **second)
        return self.client.settle()

    @property
    def found(self):
        return [(x.kernel, p.rule) for x in self.client.log.launches for p in x.troubles]

    @property
    def words(self):
        return self.memory.memory.read(self.data, 128).view(np.uint32).tolist()


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy", "starving:0:0"])
def test_what_is_read_before_the_wait_races(memory, schedule):
    """The kernel, its place, and the one before, by the names that people read."""
    program = Program(memory, after=WAIT, schedule=Schedule.parse(schedule))
    program.pair()
    assert set(program.found) <= {("_Z5firstPj", "race"), ("_Z6secondPj", "race")}
    assert program.found
    texts = [p.text for x in program.client.log.launches for p in x.troubles]
    assert all("of second, launched next" in text for text in texts)


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy", "starving:0:0"])
def test_what_is_read_behind_it_does_not(memory, schedule):
    """And the numbers are those of one launch after the other."""
    program = Program(memory, before=WAIT, schedule=Schedule.parse(schedule), level=Level.STRICT)
    assert program.pair() is Status.SUCCESS
    assert (program.found, program.words) == ([], list(range(1, 33)))


def test_each_launch_is_told(memory):
    """In their order, each with its instructions; a line says which one it could overlap."""
    program = Program(memory, before=WAIT)
    program.pair()
    first, second = program.client.log.launches
    assert (first.kernel, first.overlaps) == ("_Z5firstPj", "")
    assert (second.kernel, second.overlaps) == ("_Z6secondPj", "_Z5firstPj")
    assert first.steps < second.steps
    assert "after first and before its end" in str(second)


@pytest.mark.parametrize(
    "between",
    [
        lambda program: program.client.settle(),
        lambda program: program.client.ask(Operation.READ, "QQ", program.data, 4),
        lambda program: program.client.ask(Operation.FILL, "QIIQ", program.data, 0, 4, 1),
    ],
)
def test_what_the_program_asks_for_comes_behind_launches(memory, between):
    """A synchronisation or a copy between the two keeps them apart."""
    program = Program(memory)
    program.launch("_Z5firstPj")
    between(program)
    program.launch("_Z6secondPj", behind=True)
    program.client.settle()
    assert program.found == []


@pytest.mark.parametrize(
    ("stream", "cooperative", "kernels"), [(7, False, "*"), (0, True, "*"), (0, False, "first(*")]
)
def test_launches_that_do_not_overlap(memory, stream, cooperative, kernels):
    """Of two streams, with blocks that meet, or of which one is not on trial."""
    program = Program(memory, kernels=kernels)
    program.pair(stream=stream, cooperative=cooperative)
    assert (program.found, program.words) == ([], list(range(1, 33)))


def test_a_program_that_asks_for_nothing_more(memory, monkeypatch):
    """What waits for a dependent happens after a while: the program may poll pinned memory."""
    program = Program(memory)
    program.launch("_Z5firstPj")
    program.client.server.queue.look()
    assert program.client.log.launches == []
    monkeypatch.setattr(queue, "PATIENCE_SECONDS", 0.0)
    program.client.server.queue.look()
    assert len(program.client.log.launches) == 1


def test_who_waits_is_told_of_a_failure_once(memory):
    """Also where the launch that failed is not the last one."""
    program = Program(memory, trap="trap;")
    program.launch("other")
    program.launch("_Z5firstPj")
    assert program.client.settle() is Status.LAUNCH_FAILED
    assert program.client.settle() is Status.SUCCESS
    assert program.found == [("other", "trap")]


def test_a_fault_is_of_the_launch_that_ran(memory):
    """Of two that run together the second traps; both have failed, one is at fault."""
    program = Program(memory, before=WAIT, after="trap;")
    assert program.pair() is Status.LAUNCH_FAILED
    assert program.found == [("_Z6secondPj", "trap")]


def test_a_chain(memory):
    """The third may overlap the second, which did not wait for the first: nothing orders those."""
    program = Program(memory)
    program.launch("_Z5firstPj")
    program.launch("other", behind=True)
    program.launch("_Z6secondPj", behind=True)
    program.client.settle()
    assert {rule for _, rule in program.found} == {"race"}
    assert [x.overlaps for x in program.client.log.launches] == ["", "_Z5firstPj", "other"]


def test_a_long_chain_is_cut(memory, monkeypatch):
    """So many launches run together and no more."""
    monkeypatch.setattr(queue, "MOST", 2)
    program = Program(memory)
    for _ in range(3):
        program.launch("other", behind=True)
    program.client.settle()
    assert [x.overlaps for x in program.client.log.launches] == ["", "other", ""]
