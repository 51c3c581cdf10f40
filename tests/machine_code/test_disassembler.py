"""nvdisasm: found or not, asked once for each different instruction, and read back in order."""

import json
import os
from pathlib import Path

import pytest

from kernelpack.errors import ToolchainError
from kernelpack.machine_code import disassembler
from kernelpack.machine_code.disassembler import Disassembler, Text, absent, find
from kernelpack.machine_code.instruction import Kernel, read
from tests.fakes.runner import FakeRunner

# Instructions as ptxas 13.4.92 wrote them for sm_100a.
EXIT = bytes.fromhex("4d790000000000000000800300ea0f00")
WAITING_EXIT = bytes.fromhex("4d790000000000000000800300ea0f02")
NOP = bytes.fromhex("18790000000000000000000000c00f00")
FOUND = Disassembler(program=Path("/bin/nvdisasm"), version="13.4.92")


def rows(*listed: dict) -> str:
    return json.dumps([{"SM": {}}, [{"sass-instructions": listed}]])


@pytest.fixture
def answer(monkeypatch):
    """What nvdisasm says; returns the calls of it."""

    def say(**given):
        runner = FakeRunner(**given)
        monkeypatch.setattr(disassembler, "run", runner)
        return runner.calls

    return say


def test_the_installed_one():
    """The wheel's program, and its version."""
    found = find()
    assert found
    assert os.access(found.program, os.X_OK)
    assert str(found) == f"nvdisasm {found.version}"


def test_none(tmp_path):
    """Where the wheel is not installed there is none, and one line says what to install."""
    assert find([str(tmp_path)]) is None
    assert absent().startswith("machine code was not linted: nvidia-cuda-nvdisasm is not installed")
    assert "[lint]" in absent()


def test_texts(answer):
    """Name, operands, predicate, and how far an instruction jumps from where it lies."""
    calls = answer(
        stdout=rows(
            {"opcode": "NOP"},
            {
                "predicate": "@!P0",
                "opcode": "BRA",
                "operands": "0xffffff0",
                "other-attributes": {"control-flow": "True"},
            },
            {"opcode": "LOP3.LUT", "operands": "R1,R2,0x1"},
        )
    )
    assert FOUND.texts([NOP, NOP, NOP], "sm_100a") == [
        Text("NOP", "", "", None),
        Text("BRA", "0xffffff0", "@!P0", -32),
        Text("LOP3.LUT", "R1,R2,0x1", "", None),
    ]
    assert calls[0].command[:3] == ("/bin/nvdisasm", "--binary", "SM100a")


def test_nothing_to_read(answer):
    """No instruction, no call."""
    calls = answer()
    assert FOUND.texts([], "sm_100a") == []
    assert calls == []


def test_what_it_cannot_read(answer):
    """The target, what nvdisasm says first, and what to install."""
    answer(returncode=1, stderr="nvdisasm error : Illegal instruction found\nmore\n")
    message = (
        "^nvdisasm 13.4.92: cannot read machine code of sm_100a: nvdisasm error : Illegal inst"
    )
    with pytest.raises(ToolchainError, match=message):
        FOUND.texts([NOP], "sm_100a")


def kernel(*instructions: bytes, target: str = "sm_100a") -> Kernel:
    return Kernel(entry="k", target=target, code=b"".join(instructions))


@pytest.mark.parametrize(("target", "calls"), [("sm_100a", 1), ("sm_90a", 2)])
def test_once_for_each_target(answer, target, calls):
    """Kernels of one target are read together; what differs in its control bits alone is one."""
    asked = answer(stdout=rows({"opcode": "NOP"}, {"opcode": "EXIT"}))
    read([kernel(NOP, EXIT), kernel(EXIT, NOP, WAITING_EXIT, target=target)], FOUND)
    assert len(asked) == calls


@pytest.mark.toolchain
def test_what_it_really_says():
    """Real code, read by the real nvdisasm: offsets, names and waits of each kernel's own."""
    found = find()
    assert found
    first, second = read([kernel(NOP, EXIT), kernel(WAITING_EXIT, NOP)], found)
    assert [(i.at, i.opcode, i.waits) for i in first] == [(0, "NOP", 0), (16, "EXIT", 0)]
    assert [(i.at, i.opcode, i.waits) for i in second] == [(0, "EXIT", 0b100000), (16, "NOP", 0)]
