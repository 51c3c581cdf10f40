"""PTX text → Program: targets, variables, entries with lazy bodies.

Accepts what NVRTC and nvcc 12.9 and 13.x emit (PTX ISA 8.6 to 9.x). A body is read when an entry
is first run, so that a module of ten megabytes opens in a fraction of a second.
"""

import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from kernelpack.emulator.faults import PtxError
from kernelpack.emulator.ptx.body import Context, Scope, read_body
from kernelpack.emulator.ptx.calls import Function, Functions, split_signature, with_functions
from kernelpack.emulator.ptx.lexer import (
    Lines,
    blank_comments,
    integer,
    matching_brace,
    natural,
    split_operands,
)
from kernelpack.emulator.ptx.syntax import BITS, Body, Parameter, Symbol, Variable

_HEADER = re.compile(r"\s*\.(version|target|address_size)\s+([^\n;]*)")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"[^\n]*')
_SECTION = re.compile(r"\s*\.section\s+[\w.$]+\s*(?=\{)")
_SKIPPED = re.compile(r"\s*(?:\.pragma[^;]*;|\.alias[^;]*;|;|@@[^\n]*)")
_CODE = re.compile(r"\.(entry|func)\b")
_END = re.compile(r"[;{]")
_FUNCTION = re.compile(r"\.func\b")
_NAME = re.compile(r"\.entry\s+([\w$]+)")
_DIRECTIVE = re.compile(
    r"\.(maxntid|reqntid|reqnctapercluster|explicitcluster|maxclusterrank|minnctapersm|maxnreg"
    r"|blocksareclusters)\b\s*([\d, ]*)"
)
_VARIABLE = re.compile(
    r"\.(?P<type>[busf](?:8|16|32|64|128)|f16x2|bf16|pred)\s+(?P<name>[\w$%]+)\s*"
    r"(?P<array>(?:\[\s*(?:\d+\s*)?\])*)\s*(?:=\s*(?P<initial>.*))?$",
    re.DOTALL,
)
_ATTRIBUTES = re.compile(
    r"\.align\s+\d+|\.ptr\b(?:\s+\.(?:global|shared|const|local|param))?"
    r"|\.(?:extern|visible|weak|common|global|shared|local|const|param)\b|\.attribute\([^()]*\)"
)
_SPACE = re.compile(r"\.(global|shared|local|const|param)\b")
MAX_VARIABLE_BYTES = 1 << 30
"""A larger variable is refused: it is a damaged or hostile text."""
MAX_MODULE_BYTES = 2 << 30
"""The same for all variables of a module together."""
MAX_PARAMETER_BYTES = 32_764
"""The largest parameter block of a kernel, on sm_70 and later."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A kernel: its parameters, performance directives, and its body, read on first use.

    `target` is its module's, as written.
    """

    name: str
    target: str
    parameters: tuple[Parameter, ...]
    parameter_bytes: int
    directives: Mapping[str, tuple[int, ...]]
    read: Callable[[], Body] = field(repr=False)

    @cached_property
    def body(self) -> Body:
        """The instructions. Raises PtxError when the text cannot be read."""
        return self.read()


@dataclass(frozen=True, slots=True)
class Program:
    """A PTX module: `target` as written (`sm_100a`), variables, entries by name, and its text."""

    version: str
    target: str
    variables: tuple[Variable, ...]
    entries: Mapping[str, Entry]
    functions: Functions = field(default_factory=Functions)
    text: str = field(default="", repr=False)

    def entry(self, name: str) -> Entry:
        """The entry called `name`.

        Raises:
            PtxError: there is none; the hint lists those there are.
        """
        if name not in self.entries:
            known = ", ".join(self.entries) or "none"
            raise PtxError(f"no entry `{name}`", hint=f"entries of this module: {known}")
        return self.entries[name]


@lru_cache(maxsize=32)
def parse(text: str) -> Program:
    """Read a module; the same text gives the same Program.

    Raises:
        PtxError: the text is not PTX; `where` names its line.
    """
    return _Module(text).read()


class _Module:
    """The scan over the top level of one text."""

    def __init__(self, text: str) -> None:
        self.text = blank_comments(text.rstrip("\0"))
        self.lines = Lines(self.text)
        self.header: dict[str, str] = {}
        self.files: dict[int, str] = {}
        self.variables: list[Variable] = []
        self.variable_bytes = 0
        self.entries: dict[str, Entry] = {}
        self.functions: dict[str, Function] = {}

    def read(self) -> Program:
        position = 0
        while self.text[position:].strip() if position > len(self.text) - 4096 else True:
            try:
                position = self._read_one(position)
            except PtxError as error:
                line = self.lines.line(position + 1)
                where = error.where or f"ptx:{line}"
                raise PtxError(error.what, where=where, hint=error.hint) from error
        if "target" not in self.header:
            raise PtxError("no `.target` directive", where="ptx:1", hint="is this PTX?")
        return Program(
            version=self.header.get("version", ""),
            target=self.header["target"].split(",")[0].strip(),
            variables=tuple(self.variables),
            entries=self.entries,
            functions=Functions(self.functions),
            text=self.text,
        )

    def _read_one(self, position: int) -> int:
        """Read the construct at `position`; the offset after it."""
        text = self.text
        if header := _HEADER.match(text, position):
            self.header[header.group(1)] = header.group(2).strip()
            return header.end()
        if file := _FILE.match(text, position):
            self.files[natural(file.group(1))] = file.group(2)
            return file.end()
        if skipped := _SKIPPED.match(text, position):
            return skipped.end()
        if section := _SECTION.match(text, position):
            return matching_brace(text, section.end()) + 1
        return self._read_declaration(position)

    def _read_declaration(self, position: int) -> int:
        """A variable, an entry or a function; the offset after it."""
        text = self.text
        end = _END.search(text, position)
        if end is None:
            raise PtxError(f"the text ends inside `{text[position:].strip()[:60]}`")
        head = text[position : end.start()]
        is_code, opens = _CODE.search(head), end.group() == "{"
        close = matching_brace(text, end.start()) if opens else end.start()
        if is_code:
            if opens and is_code.group(1) == "entry":
                self._add_entry(head, end.end(), close)
            elif opens:
                self._add_function(head, end.end(), close)
            return close + 1
        stop = text.find(";", close)
        if stop < 0:
            raise PtxError(f"no semicolon after `{head.strip()[:60]}`")
        self.variables.append(read_variable(text[position:stop]))
        self.variable_bytes += self.variables[-1].size
        if self.variable_bytes > MAX_MODULE_BYTES:
            raise PtxError(
                f"{self.variable_bytes} bytes of variables", hint=f"at most {MAX_MODULE_BYTES}"
            )
        return stop + 1

    def _add_entry(self, head: str, start: int, end: int) -> None:
        name = _NAME.search(head)
        if name is None:
            raise PtxError(f"an entry without a name: `{head.strip()[:60]}`")
        signature, _, directives = head[name.end() :].partition(")")
        declared = split_operands(signature.strip().removeprefix("("))
        parameters, size = _lay_out(read_variable(piece) for piece in declared)
        if size > MAX_PARAMETER_BYTES:
            raise PtxError(
                f"{size} bytes of parameters of `{name.group(1)}`",
                hint=f"at most {MAX_PARAMETER_BYTES}",
            )
        context = Context(self.lines, self.files, read_variable)
        self.entries[name.group(1)] = Entry(
            name=name.group(1),
            target=self.header.get("target", "").split(",")[0].strip(),
            parameters=parameters,
            parameter_bytes=size,
            directives={
                word: tuple(natural(n) for n in re.findall(r"\d+", numbers))
                for word, numbers in _DIRECTIVE.findall(directives)
            },
            read=lambda: with_functions(
                read_body(self.text, start, end, context), Functions(self.functions)
            ),
        )

    def _add_function(self, head: str, start: int, end: int) -> None:
        found = _FUNCTION.search(head)
        assert found is not None
        results, name, parameters = split_signature(head[found.end() :])
        if not name:
            raise PtxError(f"a function without a name: `{head.strip()[:60]}`")
        given, taken = (
            tuple(read_variable(piece).name for piece in split_operands(part))
            for part in (results, parameters)
        )
        context = Context(self.lines, self.files, read_variable)

        def read(first: int) -> Body:
            scope = Scope(f"{name}:", first, (*given, *taken))
            return read_body(self.text, start, end, context, scope)

        self.functions[name] = Function(name, given, taken, read)


def _lay_out(variables: Iterable[Variable]) -> tuple[tuple[Parameter, ...], int]:
    """Parameters at their natural alignment, in order; the size of the block in bytes."""
    offset, placed = 0, []
    for variable in variables:
        offset = -(-offset // variable.alignment) * variable.alignment
        placed.append(
            Parameter(variable.name, offset, variable.size, variable.alignment, variable.type)
        )
        offset += variable.size
    return tuple(placed), offset


def read_variable(text: str) -> Variable:
    """`.global .align 4 .b8 name[12] = {…}` → Variable.

    Raises:
        PtxError: not a declaration that this parser knows.
    """
    align = re.search(r"\.align\s+(\d+)", text)
    space = _SPACE.search(re.sub(r"\.ptr\s+\.\w+", ".ptr", text))
    match = _VARIABLE.search(_ATTRIBUTES.sub(" ", text).strip())
    if match is None:
        raise PtxError(f"not a declaration: `{text.strip()[:80]}`")
    width = max(BITS[match["type"]] // 8, 1)
    size = width * _elements(match["array"])
    alignment = max(natural(align.group(1)) if align else 0, width)
    if size > MAX_VARIABLE_BYTES or alignment > MAX_VARIABLE_BYTES or alignment & (alignment - 1):
        raise PtxError(f"`{match['name']}` has {size} bytes aligned to {alignment}")
    initial, relocations = _initial(match["initial"], match["type"], size)
    return Variable(
        name=match["name"],
        space=space.group(1) if space else "param",
        alignment=alignment,
        size=size,
        initial=initial,
        relocations=relocations,
        external=".extern" in text,
        type=match["type"],
    )


def _elements(array: str) -> int:
    """`[3][4]` → 12, `[]` → 0, no brackets → 1; no more than would be refused anyway."""
    count = 1
    for side in re.findall(r"\[\s*(\d*)\s*\]", array):
        count = min(count * natural(side or "0"), MAX_VARIABLE_BYTES + 1)
    return count


def _initial(
    text: str | None, kind: str, size: int
) -> tuple[bytes, tuple[tuple[int, Symbol], ...]]:
    """An initialiser's bytes, and the addresses of symbols to be stored in them."""
    if text is None:
        return b"", ()
    width = BITS[kind] // 8
    packed, relocations = bytearray(), []
    for item in split_operands(re.sub(r"[{}]", " ", text)):
        value = _constant(item, kind)
        if value is None:
            if width != 8:
                raise PtxError(f"not an initial value of `.{kind}`: `{item[:60]}`")
            relocations.append((len(packed), _symbol(item)))
            value = 0
        packed += (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    if len(packed) > size:
        raise PtxError(f"{len(packed)} bytes of initial value for a variable of {size}")
    return bytes(packed), tuple(relocations)


def _symbol(item: str) -> Symbol:
    match = re.fullmatch(r"(?:generic\()?\s*([\w$]+)\s*\)?\s*(?:\+\s*(\d+))?", item)
    if match is None:
        raise PtxError(f"not an initial value: `{item[:60]}`")
    return Symbol(match.group(1), natural(match.group(2) or "0"))


def _constant(item: str, kind: str) -> int | None:
    """The bits of a literal of type `kind`; None when it is not a literal.

    Raises:
        PtxError: it is too large for the type.
    """
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", item):
        return int(match.group(1) or match.group(2), 16)
    number = integer(item)
    if number is not None:
        return number
    if kind in ("f32", "f64") and re.fullmatch(r"-?\d+\.\d*(?:[eE][+-]?\d+)?", item):
        code = "<f" if kind == "f32" else "<d"
        try:
            return int.from_bytes(struct.pack(code, float(item)), "little")
        except OverflowError as error:
            raise PtxError(f"`{item[:60]}` does not fit `.{kind}`") from error
    return None
