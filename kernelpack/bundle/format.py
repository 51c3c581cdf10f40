"""The bundle format, version 1.2: the bytes of a `.kpk` file.

A bundle holds compiled kernels and an index. The index alone is enough to choose a kernel for a
problem and to launch it: a program in any language maps the file, reads fixed records, runs
integer expressions, and calls the driver. Nothing in a bundle is executed but the kernels.

## Conventions

Little-endian. Offsets, sizes and counts are unsigned. Every part, section and record starts at a
multiple of 8; padding is zero. A reader checks every offset and count against what encloses it
before use. Digests are SHA-256, 32 bytes.

Three things are written everywhere the same:

- *text*: u32 offset and u32 size in `strings`; UTF-8, no terminator, at most 4096 bytes.
- *ref*: u32 offset of a record in `records`, a multiple of 8.
- *list*: u32 offset and u32 count: that many u32 in `records`, starting at a multiple of 8. They
  are refs by default. At most 1024 (`entries` of a kernel: the number of entries).

## Versions

Major 1 is the only one described here; a reader refuses another. A minor version may append
fields to the end of a record or of a table's rows, and add parts and sections. So a reader steps
through a table by the stride it states, takes the fields it knows from a record and skips the
rest, and skips an unknown part or section unless its flag 1 (*required*) is set. It refuses an
expression with an operation that it does not know: 1.1 added 23 to 26. 1.2 added numbers: their
section is required, so that an older reader refuses a bundle that has one, and says why.

## File

| part | tag | what |
|---|---|---|
| header | | below; at offset 0 |
| index | 1 | what the kernels are and how to launch them; hashed by pages |
| tree | 2 | digests of the index's pages, and digests of those |
| frames | 3 | where each image's frame lies: u64 offset in `images`, u64 size; one an image |
| dictionary | 4 | zstd dictionary of all images; empty where there are too few to train one |
| documents | 5 | one zstd frame without dictionary: a line of canonical JSON an entry, for people |
| images | 6 | one zstd frame an image, 8-aligned |
| signature | 7 | optional, below; empty in an unsigned bundle |

Parts lie in this order and do not overlap. The output of zstd (parts 3 to 6) may differ between
versions of zstd, so the root does not cover it: it covers the digest and size of what each frame
holds. A file that another process may have open is replaced by rename, never written in place.

### Header

| offset | field | |
|---|---|---|
| 0 | magic | 89 `KPK` 0D 0A 1A 0A: broken by text-mode transfers |
| 8 | u16 major, u16 minor | 1, 2 |
| 12 | u32 header size | 104 + 56 x parts, at most 4096 |
| 16 | u64 file size | another size: truncated |
| 24 | u32 parts, u32 page size | 1024 bytes a page of the index |
| 32 | u32 fan-out, u32 compressor | 16 digests a node of the tree; zstd version, 10507 is 1.5.7 |
| 40 | root | digest of the tree's last node |
| 72 | the parts | 56 bytes each |
| end - 32 | digest | of the header's bytes before it |

A part is u32 tag, u32 flags, u64 offset in the file, u64 size, digest of its bytes. A reader that
launches kernels need not check the parts' digests: they are for `kernelpack check`.

### Tree

The index is cut into pages of 1024 bytes; the last may be shorter. A page's digest is
SHA-256(00, page). Sixteen digests make a node, whose digest is SHA-256(01, digests); nodes of
nodes follow until one digest is left: the root, in the header. The part holds the digests level
by level from the pages up, without the root. To trust a byte of the index, check its page and one
node a level. To look an entry up, search by unchecked bytes and check what is found; to say that
it is missing, search again by checked bytes.

### Signature

u32 algorithm (1: Ed25519), u32 0, 32 bytes public key, 64 bytes signature of (magic, root).

## Index

Offsets inside the index count from its start.

| offset | field | |
|---|---|---|
| 0 | u32 kind, u32 sections | 0: cubins, 1: PTX |
| 8 | u64 index size | |
| 16 | u64 documents size, digest | of the decompressed JSON lines |
| 56 | the sections | 32 bytes each |

A section is u32 tag, u32 flags, u64 offset, u64 count, u64 stride; its size is count x stride.
Sections lie in this order and do not overlap: what every look-up needs comes first, so that few
pages are checked.

| section | tag | stride | rows |
|---|---|---|---|
| targets | 1 | 16 | at most 1024, sorted by name: text name, list of capabilities, below |
| kernels | 2 | 32 | sorted by stem, ABI number |
| provenance | 3 | 16 | sorted by key: text key, text value |
| strings | 4 | 1 | bytes |
| entries | 5 | 152 | sorted by id digest |
| images | 6 | 40 | sorted by digest: digest, u64 raw size (at most 256 MiB) |
| records | 7 | 8 | words |
| numbers | 8 | 16 | sorted by kernel: u32 kernel, u32 0, list numbers; optional |

A PTX bundle (`X.ptx.kpk` beside `X.kpk`) has images only: PTX texts, found by digest.

An entry: id digest, source digest, PTX digest; u32 image, u32 kernel, u32 target (row numbers),
ref variant; text id, text symbol; u32 registers a thread, u32 static shared bytes, u32 stack
bytes, u32 spill bytes, u32 bytes of the parameter block, u32 0. The id digest is that of the id's
UTF-8.

A capability is u32 major x 65536 + minor: of a device that runs the target's machine code. The
list is for programs that do not know the target; those that do go by what they know.

An id is `STEM[arch=TARGET,AXIS=VALUE,...]`, the names of axes in small letters; a symbol is STEM,
then the values, each after a `_`, and `_` for what is neither letter nor digit. Letters are those
of ASCII. A reader refuses an entry that is called otherwise than its variant.

A kernel: text stem, u32 ABI number, u32 sizes, list names, list entries (row numbers, by id).
The first `sizes` names are given by the problem; those after it by the device: `sm_count`. Beside
sizes, which are integers, a call of a kernel may have numbers: floats of 64 bits, such as an
epsilon, none of which is a NaN.

## Records

A record starts with u32 kind, u32 size in bytes with this start; then, by kind:

1. *expression*: text, u32 words, u32 depth, then the words.
2. *name*: text name, text doc.
3. *argument*: text name, u32 dtype, u32 access, u32 alignment, u32 0, list shape.
4. *pointer*: text name, u32 offset, u32 size, u32 argument, u32 0.
5. *scalar*: text name, u32 offset, u32 size, u32 dtype, ref value.
6. *tensor map*: text name, text map name, u32 offset, u32 size, u32 argument, u32 element,
   u32 swizzle, u32 interleave, u32 fill, u32 promotion, ref offset in bytes, u32 flags,
   list dims, list strides in bytes, list box, list element strides (empty: all 1).
7. *guard*: ref when, u32 0, text reason.
8. *constant*: text name, u32 is text, u32 0, i64 value or text.
9. *launch*: u32 flags, ref dynamic shared bytes, refs grid x y z, refs block x y z,
   refs cluster x y z, u32 0.
10. *variant*: u32 kernel, ref launch, ref cost, ref workspace bytes, text template, list axes,
    list constants, list arguments, list params, list guards, i64 registers, i64 shared bytes,
    i64 tensor memory columns: the budget.
11. *number*: text name, text doc, u32 has default, u32 0, f64 default.
12. *number parameter*: text name, u32 offset, u32 size, u32 dtype, u32 number.

Params (kinds 4, 5, 6, 12) are in the order of the signature, each with its size and its offset in
the cubin's parameter block, as the driver's `cuFuncGetParamInfo` says it too. They are not those
of a C struct: a tensor map that comes first may lie above 0. They are there to be compared; a
launch by pointers to its arguments does not need them.

Pointers and maps name an argument by its place in the list, number parameters a number of the
kernel. A scalar is of an integer type, a number parameter of fp16, bf16, fp32 or fp64: the number
is rounded to it once, to nearest even; a finite one that becomes infinite is refused, and one too
small becomes 0. Launch flag 1 is programmatic dependent launch. Map flag 1: rows are copied by
gather4 or scatter4, whose rules hold. Elements, swizzles, fills, interleaves and promotions are the
driver's `CUtensorMap…` numbers. Access: 0 reads, 1 writes, 2 both. Template, budget and constants
(kind 8, also axes) are for people; a launch needs none of them.

Data types: u8 0, i8 1, u16 2, i16 3, u32 4, i32 5, u64 6, i64 7, fp16 8, bf16 9, fp32 10, fp64 11,
tf32 12, e4m3 13, e5m2 14, e2m3 15, e3m2 16, e2m1 17, ue8m0 18, ue4m3 19.

## Expressions

A word is u8 op, u8 wide, u16 0, i32 operand. The words run from first to last on a stack of
signed 64-bit integers; `depth` is the most it holds, at most 64. The value is what is left: one.

| op | | op | | op | |
|---|---|---|---|---|---|
| 0 | constant: operand; where wide is 1, the next 8 bytes as i64 | 8 | a < b | 16 | not a |
| 1 | name: the operand's place in the kernel's names | 9 | a <= b | 17 | c, a, b: a if c else b |
| 2 | a + b | 10 | a == b | 18 | min |
| 3 | a - b | 11 | a != b | 19 | max |
| 4 | a x b | 12 | a > b | 20 | a / b, rounded up |
| 5 | a / b, rounded down | 13 | a >= b | 21 | a rounded up to a multiple of b |
| 6 | a modulo b, sign of b | 14 | a and b: 0 or 1 | 22 | largest power of two <= a |
| 7 | -a | 15 | a or b: 0 or 1 | 23 | clusters of a CTAs that run at once |
| | | | | 24 | the most CTAs of a cluster so that a run at once; at least 1 |
| | | | | 25 | the most of (s - 1) x (a / s, rounded up) for s from 1 to b |
| | | | | 26 | a rounded down to a multiple of b |

The last operand pushed is b. A result outside 64 bits, a zero divisor, and 22, 23 or 24 of a number
below 1 are errors, and 25 of an a below 0 or a b outside 1 to 16: the problem is refused. 23 and 24
ask the device about the kernel, with the block and dynamic shared memory of the launch
(`cuOccupancyMaxActiveClusters`; 0 for more CTAs than 16): they are in a launch's grid and cluster
and in scalars, nowhere else. `words` counts 8-byte words, wide constants' included; at most 4096.

## Choosing and launching

A variant serves a problem on a device when its target runs there and every guard is not 0. Of those
that serve, the least cost is taken, then the first id in byte order.
"""

from enum import IntEnum
from struct import Struct

MAGIC = b"\x89KPK\r\n\x1a\n"
MAJOR, MINOR = 1, 2
ALIGN = 8
DIGEST_BYTES = 32
PAGE_BYTES = 1024
FAN_OUT = 16
REQUIRED = 1

MAX_HEADER_BYTES = 4096
MAX_IMAGE_BYTES = 256 << 20
MAX_DICTIONARY_BYTES = 16 << 20
MAX_DOCUMENTS_BYTES = 256 << 20
MAX_SIGNATURE_BYTES = 64 << 10
MAX_ITEMS = 1024
MAX_TEXT_BYTES = 4096
MAX_TARGETS = 1024
MAX_WORDS = 4096
MAX_DEPTH = 64


class Part(IntEnum):
    """The parts of a file."""

    INDEX = 1
    TREE = 2
    FRAMES = 3
    DICTIONARY = 4
    DOCUMENTS = 5
    IMAGES = 6
    SIGNATURE = 7


class Section(IntEnum):
    """The sections of an index."""

    TARGETS = 1
    KERNELS = 2
    PROVENANCE = 3
    STRINGS = 4
    ENTRIES = 5
    IMAGES = 6
    RECORDS = 7
    NUMBERS = 8


class Holds(IntEnum):
    """The kind of a bundle's images."""

    CUBIN = 0
    PTX = 1


class Kind(IntEnum):
    """The kinds of records."""

    EXPRESSION = 1
    NAME = 2
    ARGUMENT = 3
    POINTER = 4
    SCALAR = 5
    MAP = 6
    GUARD = 7
    CONSTANT = 8
    LAUNCH = 9
    VARIANT = 10
    NUMBER = 11
    NUMBER_PARAM = 12


HEADER = Struct("<8sHHIQIIII32s")
PART = Struct("<IIQQ32s")
FRAME = Struct("<QQ")
SIGNATURE = Struct("<II32s64s")
INDEX = Struct("<IIQQ32s")
SECTION = Struct("<IIQQQ")
RECORD = Struct("<II")
WORD = Struct("<BBHi")
WIDE = Struct("<q")

ROWS = {
    Section.TARGETS: Struct("<4I"),
    Section.KERNELS: Struct("<8I"),
    Section.PROVENANCE: Struct("<4I"),
    Section.STRINGS: Struct("<B"),
    Section.ENTRIES: Struct("<32s32s32s14I"),
    Section.IMAGES: Struct("<32sQ"),
    Section.RECORDS: Struct("<Q"),
    Section.NUMBERS: Struct("<4I"),
}
"""The rows of each section; its size is the stride that this version writes."""

FIELDS = {
    Kind.EXPRESSION: Struct("<4I"),
    Kind.NAME: Struct("<4I"),
    Kind.ARGUMENT: Struct("<8I"),
    Kind.POINTER: Struct("<6I"),
    Kind.SCALAR: Struct("<6I"),
    Kind.MAP: Struct("<22I"),
    Kind.GUARD: Struct("<4I"),
    Kind.CONSTANT: Struct("<4I8s"),
    Kind.LAUNCH: Struct("<12I"),
    Kind.VARIANT: Struct("<16I3q"),
    Kind.NUMBER: Struct("<6Id"),
    Kind.NUMBER_PARAM: Struct("<6I"),
}
"""The fields of each kind of record, after its start."""


def aligned(size: int) -> int:
    """The next multiple of 8 bytes."""
    return -(-size // ALIGN) * ALIGN


DAMAGED = "the file is damaged: fetch it or build it again"
"""The hint of every error that only a change after writing explains."""
