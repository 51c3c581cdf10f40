"""The wire: requests and answers, and the C++ side's idea of them."""

import re
import socket
import struct

import pytest

from kernelpack.emulate import protocol, standin
from kernelpack.emulate.protocol import Operation, Status


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_request(ends):
    """A request is its operation and the values of its payload."""
    ours, theirs = ends
    body = struct.pack("<I", 3) + protocol.text("näme") + b"rest"
    theirs.sendall(struct.pack("<II", Operation.KERNEL, len(body)) + body)
    received = protocol.receive(ours)
    assert received is not None
    operation, payload = received
    assert (operation, payload.take("I"), payload.text(), payload.rest()) == (
        Operation.KERNEL,
        (3,),
        "näme",
        b"rest",
    )


def test_an_answer(ends):
    """An answer is a status and a payload with its size."""
    ours, theirs = ends
    protocol.answer(ours, Status.NOT_FOUND, b"abc")
    assert theirs.recv(64) == struct.pack("<II", 500, 3) + b"abc"


@pytest.mark.parametrize("sent", [b"", b"\1\0\0", struct.pack("<II", 1, 8) + b"half"])
def test_a_program_that_goes(ends, sent):
    """A program that ends, even in the midst of a request, ends the connection."""
    ours, theirs = ends
    theirs.sendall(sent)
    theirs.close()
    assert protocol.receive(ours) is None


def test_both_sides_number_operations_alike():
    """The stand-in lists the operations in the order of their numbers."""
    source = (standin.SOURCES / "wire.hpp").read_text()
    listed = re.search(r"enum class Operation : uint32_t \{([^}]*)\}", source)
    assert listed is not None
    names = [name.strip() for name in listed[1].split(",")]
    assert names == [operation.name.lower() for operation in Operation]
