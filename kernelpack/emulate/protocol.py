"""The wire between a host program's stand-in and the emulator: requests, and an answer to each.

A request is the number of an operation and the size of its payload, two u32, then the payload; an
answer is a CUDA status (0 is success) and a size, two u32, then a payload. Values are little endian
and unpadded; a text is its size in bytes, u32, and UTF-8. One connection is one program.

| operation  | payload of the request | of the answer |
|---|---|---|
| hello      | | text path of the device memory · u64 address · u64 size · text name · u32 count · count x (i32 attribute, i32 value) |
| module     | a fat binary, or a PTX text | u32 module |
| kernel     | u32 module · text name | u32 kernel · u32 parameter bytes · u32 static shared bytes · u32 most threads · u32 count · count x (u32 offset, u32 size) |
| launch     | u32 kernel · u32 x 3 grid · u32 x 3 block · u32 x 3 cluster · u32 dynamic shared bytes · u32 programmatic · u32 cooperative · u64 stream · parameters | |
| allocate   | u64 size · u32 managed | u64 address |
| release    | u64 address | |
| write      | u64 address · u64 size: the program is about to write there | |
| read       | u64 address · u64 size: the program is about to read there | |
| copy       | u64 target · u64 source · u64 size | |
| fill       | u64 target · u32 value · u32 width · u64 count | |
| symbol     | u32 module · text name | u64 address · u64 size |
| tensor_map | u32 element, interleave, swizzle, promotion, fill, rank · u64 address · u64 x rank dims · u64 x (rank-1) strides · u32 x rank box · u32 x rank element strides | 128 bytes |
| refuse     | text: a call that is not modelled | |
| complain   | text: what is wrong with a call | |
| settle     | | u32 status of the launches that have ended, for whoever waits for them |
| touch      | u64 address · u32 writes: the host itself accesses device memory there | |
"""  # noqa: E501 - a table

import socket
import struct
from dataclasses import dataclass
from enum import IntEnum

_HEAD = struct.Struct("<II")
_CHUNK_BYTES = 1 << 20


class Operation(IntEnum):
    """The kind of a request; the numbers are those of standin/wire.hpp."""

    HELLO = 0
    MODULE = 1
    KERNEL = 2
    LAUNCH = 3
    ALLOCATE = 4
    RELEASE = 5
    WRITE = 6
    READ = 7
    COPY = 8
    FILL = 9
    SYMBOL = 10
    TENSOR_MAP = 11
    REFUSE = 12
    COMPLAIN = 13
    TOUCH = 14
    SETTLE = 15


class Status(IntEnum):
    """The CUDA statuses that are answered; cudaError_t and CUresult share these numbers."""

    SUCCESS = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    INVALID_IMAGE = 200
    INVALID_HANDLE = 400
    NOT_FOUND = 500
    ILLEGAL_ADDRESS = 700
    ASSERT = 710
    MISALIGNED_ADDRESS = 716
    LAUNCH_FAILED = 719
    NOT_SUPPORTED = 801


@dataclass(slots=True)
class Payload:
    """The values of a request, taken in their order."""

    raw: bytes
    at: int = 0

    def take(self, codes: str) -> tuple[int, ...]:
        """Integers by their `struct` codes. Raises struct.error past the end."""
        form = struct.Struct("<" + codes)
        values = form.unpack_from(self.raw, self.at)
        self.at += form.size
        return values

    def text(self) -> str:
        """A text: its size and its bytes."""
        (size,) = self.take("I")
        self.at += size
        return self.raw[self.at - size : self.at].decode(errors="replace")

    def rest(self) -> bytes:
        """All that was not taken."""
        return self.raw[self.at :]


def text(value: str) -> bytes:
    """A text as the wire carries it."""
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw


def receive(connection: socket.socket) -> tuple[Operation, Payload] | None:
    """The next request; None when the program has gone."""
    head = _exactly(connection, _HEAD.size)
    if head is None:
        return None
    number, size = _HEAD.unpack(head)
    raw = _exactly(connection, size)
    return None if raw is None else (Operation(number), Payload(raw))


def answer(connection: socket.socket, status: Status, payload: bytes = b"") -> bool:
    """Send an answer; whether the program was still there to be sent one."""
    try:
        connection.sendall(_HEAD.pack(status, len(payload)) + payload)
    except ConnectionError:
        return False
    return True


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    pieces: list[bytes] = []
    while size:
        try:
            piece = connection.recv(min(size, _CHUNK_BYTES))
        except ConnectionResetError:
            return None
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
