"""Fat binaries, ELF files and PTX texts, made small for tests."""

import struct

SCALE = """
.version 8.6
.target sm_100a
.address_size 64
.global .align 4 .u32 calls = 7;
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .align 4 .b8 pad[12])
{
    .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f32 %f<4>;
    ld.param.u64 %rd1, [data];
    ld.param.f32 %f1, [factor];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    ld.global.f32 %f2, [%rd1];
    mul.f32 %f2, %f2, %f1;
    st.global.f32 [%rd1], %f2;
    ld.global.u32 %r2, [calls];
    add.u32 %r2, %r2, 1;
    st.global.u32 [calls], %r2;
    ret;
}
"""
"""data[tid] *= factor, and one more call counted."""

SPIN = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry spin()
{
    .reg .b32 %r<2>, %f<2>; .reg .pred %p<2>;
    sin.approx.f32 %f1, 0f3F800000;
    mov.u32 %r1, 0;
LOOP:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 200000;
    @%p1 bra LOOP;
    ret;
}
"""
"""Counts for about a second, by the Python engine: the compiled one leaves a sine to it."""

PTX, MACHINE_CODE = 1, 2
UNCOMPRESSED, LZ4, ZSTANDARD = 0x11, 0x2011, 0x8011


def fat_binary(*entries: tuple[int, int, bytes]) -> bytes:
    """A fat binary of (kind, flags, payload)."""
    body = b""
    for kind, flags, payload in entries:
        head = struct.pack("<HHIQ12xI8xQ16x", kind, 0x101, 64, len(payload), 100, flags)
        body += head + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def elf(sections: dict[str, bytes]) -> bytes:
    """A 64-bit ELF file that holds these sections and nothing else."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*sections, ".shstrtab"))
    held = {**sections, ".shstrtab": names}
    body, heads, at = b"", b"", 64
    for name, raw in held.items():
        where = names.index(b"\0" + name.encode() + b"\0") + 1
        heads += struct.pack("<II8x8xQQ24x", where, 1, at, len(raw))
        body, at = body + raw, at + len(raw)
    head = b"\x7fELF\x02\x01\x01".ljust(40, b"\0") + struct.pack(
        "<Q10xHHH", at, 64, len(held), len(held) - 1
    )
    return head + body + heads
