"""Read a cubin: its target, its kernel's parameters, registers, shared memory and stack.

The fields read, and where they are (measured on ptxas 12.9 and 13.4, sm_90a and sm_100a):

- `.note.nv.tkinfo` holds ptxas's own command line, with `-arch sm_100a`. ptxas 12.9 writes no
  such note for sm_90a: there the target is in `e_flags`, low byte 90, and bit 0x800 for `a`.
- `.nv.info` (the module) and `.nv.info.ENTRY` (a kernel) are records: format and attribute, a
  byte each, then a 16-bit value, which for the format 4 is the size of the payload that follows.
- `.nv.shared.ENTRY` is static shared memory, after 1 KiB that the system keeps in each block.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kernelpack.errors import ToolchainError
from kernelpack.spec.artifact import Cubin, Resources
from kernelpack.spec.params import Slot

SYSTEM_SHARED_BYTES = 1024
INSTRUCTION_BYTES = 16
NO_BYTES = "SHT_NOBITS"

SIZED = 4
KPARAM_INFO = 0x17  # u32 index, u16 ordinal, u16 offset, u32 with the size above bit 18
MIN_STACK_SIZE = 0x12  # u32 symbol, u32 bytes
REGISTER_COUNT = 0x2F  # u32 symbol, u32 registers a thread
BRANCH_TARGETS = 0x34  # u32 offset, two u16 labels, u32 count, u32 offset of each target; again

ABI_WITH_ARCH_IN_FLAGS = 7
ACCELERATED = 0x800

_ARCH = re.compile(rb"-arch[ =](sm_\d+[af]?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    """The parts of an ELF file that are read here."""

    abi: int
    flags: int
    sections: Mapping[str, bytes]
    sizes: Mapping[str, int]
    symbols: tuple[str, ...]
    end: int


def inspect(cubin: Cubin, entry: str) -> Resources:
    """What a cubin says of its kernel.

    Raises:
        ToolchainError: the image is not a cubin, is cut or has bytes after its end, is of another
            target than the value says, or has no such entry.

    """
    image = _read(cubin.image)
    if image.end != len(cubin.image):
        raise ToolchainError(f"the cubin ends at byte {image.end}, its file at {len(cubin.image)}")
    target = _target(image)
    if target != cubin.target:
        raise ToolchainError(f"the cubin is machine code of {target}, not {cubin.target}")
    _require_entry(image, entry)
    shared = image.sizes.get(f".nv.shared.{entry}", 0)
    return Resources(
        entry=entry,
        target=target,
        registers=_of_symbol(image, REGISTER_COUNT, entry),
        shared_bytes=max(0, shared - SYSTEM_SHARED_BYTES),
        stack_bytes=_of_symbol(image, MIN_STACK_SIZE, entry),
        spill_bytes=cubin.spill_store_bytes + cubin.spill_load_bytes,
        slots=_slots(image, entry),
    )


def target_of(image: bytes) -> str:
    """The target that a cubin's machine code is for, such as `sm_100a`.

    Raises:
        ToolchainError: the image is not a cubin, or does not say.

    """
    return _target(_read(image))


def entries_of(image: bytes) -> tuple[str, ...]:
    """The kernels in a cubin, in the order of their sections.

    Raises:
        ToolchainError: the image is not a cubin.

    """
    return _entries(_read(image))


def code_of(image: bytes, entry: str) -> bytes:
    """The machine code of one kernel.

    Raises:
        ToolchainError: the image is not a cubin, or has no such entry.

    """
    read = _read(image)
    _require_entry(read, entry)
    return read.sections[f".text.{entry}"]


def branches_of(image: bytes, entry: str) -> dict[int, tuple[int, ...]]:
    """Where each branch through a register (a jump table) can go; all are offsets in the code.

    Raises:
        ToolchainError: the image is not a cubin, or has no such entry.

    """
    read = _read(image)
    _require_entry(read, entry)
    found: dict[int, tuple[int, ...]] = {}
    for attribute, payload in _records(read.sections[f".nv.info.{entry}"]):
        if attribute == BRANCH_TARGETS:
            found |= _branches(payload)
    return found


def _read(image: bytes) -> _Image:
    try:
        elf = ELFFile(BytesIO(image))
        machine = elf["e_machine"]
        sections = {section.name: section for section in elf.iter_sections()}
        table = sections.get(".symtab")
        symbols = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
        read = _Image(
            abi=elf["e_ident"]["EI_ABIVERSION"],
            flags=elf["e_flags"],
            sections={name: s.data() for name, s in sections.items() if s["sh_type"] != NO_BYTES},
            sizes={name: s["sh_size"] for name, s in sections.items()},
            symbols=tuple(symbol.name for symbol in symbols),
            end=_end(elf),
        )
    except (ELFError, struct.error, ValueError, KeyError, TypeError, OverflowError) as error:
        raise ToolchainError(f"not a cubin: {error or type(error).__name__}") from error
    if machine != "EM_CUDA":
        raise ToolchainError(f"not a cubin: an ELF file for {machine}")
    return read


def _end(elf: ELFFile) -> int:
    """Where the last of an ELF file's tables and sections ends."""
    tables = [elf["e_shoff"] + elf["e_shnum"] * elf["e_shentsize"]]
    tables += [elf["e_phoff"] + elf["e_phnum"] * elf["e_phentsize"]]
    held = (s for s in elf.iter_sections() if s["sh_type"] != NO_BYTES)
    return int(max([*tables, *(s["sh_offset"] + s["sh_size"] for s in held)]))


def _target(image: _Image) -> str:
    if found := _ARCH.search(image.sections.get(".note.nv.tkinfo", b"")):
        return found[1].decode()
    if image.abi == ABI_WITH_ARCH_IN_FLAGS:
        return f"sm_{image.flags & 0xFF}{'a' if image.flags & ACCELERATED else ''}"
    raise ToolchainError("the cubin does not say its target: it has no .note.nv.tkinfo")


def _entries(image: _Image) -> tuple[str, ...]:
    return tuple(
        name.removeprefix(".nv.info.") for name in image.sizes if name.startswith(".nv.info.")
    )


def _require_entry(image: _Image, entry: str) -> None:
    held = _entries(image)
    if entry not in held or f".text.{entry}" not in image.sections:
        raise ToolchainError(
            f"the cubin has no entry `{entry}`", hint=f"it has: {', '.join(held) or 'none'}"
        )


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """`(attribute, payload)` of each record."""
    position = 0
    while position + 4 <= len(data):
        kind, attribute, value = struct.unpack_from("<BBH", data, position)
        position += 4
        size = value if kind == SIZED else 0
        yield attribute, data[position : position + size]
        position += size


def _branches(payload: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """`(branch, targets)` of one record; what is cut short is left out."""
    head = struct.Struct("<IHHI")
    position = 0
    while position + head.size <= len(payload):
        branch, _, _, count = head.unpack_from(payload, position)
        position += head.size
        targets = payload[position : position + 4 * count]
        position += 4 * count
        if position <= len(payload):
            yield branch, struct.unpack(f"<{count}I", targets)


def _of_symbol(image: _Image, attribute: int, entry: str) -> int:
    """The number that the module's info gives for an entry."""
    for found, payload in _records(image.sections.get(".nv.info", b"")):
        if found == attribute and len(payload) == 8:
            symbol, number = struct.unpack("<II", payload)
            if symbol < len(image.symbols) and image.symbols[symbol] == entry:
                return int(number)
    raise ToolchainError(f"the cubin does not say attribute {attribute:#x} of `{entry}`")


def _slots(image: _Image, entry: str) -> tuple[Slot, ...]:
    """Offset and size of each parameter, in the signature's order."""
    slots = {}
    for attribute, payload in _records(image.sections[f".nv.info.{entry}"]):
        if attribute == KPARAM_INFO and len(payload) == 12:
            _, ordinal, offset, size = struct.unpack("<IHHI", payload)
            slots[ordinal] = Slot(offset, size >> 18)
    if sorted(slots) != list(range(len(slots))):
        raise ToolchainError(f"the parameters of `{entry}` are not numbered in a row")
    return tuple(slots[ordinal] for ordinal in sorted(slots))


def counted_by_line(image: bytes) -> Mapping[int, int]:
    """Machine instructions by the source line that each came from, by a cubin's line table.

    Raises:
        ToolchainError: the image has no line table; ptxas writes it with `-lineinfo`.

    """
    file = ELFFile(BytesIO(image))
    table = file.get_section_by_name(".debug_line")
    if table is None:
        raise ToolchainError("a cubin without a line table", hint="ptxas needs -lineinfo")
    info = file.get_dwarf_info(relocate_dwarf_sections=False)
    found: Counter[int] = Counter()
    at = 0
    while at < table["sh_size"]:
        program = info._parse_line_program_at_offset(at, info.structs)  # noqa: SLF001
        rows = [entry.state for entry in program.get_entries() if entry.state]
        for row, after in pairwise(rows):
            if not row.end_sequence:
                found[row.line] += (after.address - row.address) // INSTRUCTION_BYTES
        at = program.program_end_offset
    return found
