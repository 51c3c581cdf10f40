"""How many instructions of machine code each instruction of PTX became.

ptxas keeps, beside each instruction of its output, the source line of what it came from. So the PTX
is assembled once more with one `.loc` for each of its own lines, and the line table is counted.
`-lineinfo` changes no instruction.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelpack.errors import CompileError
from kernelpack.process import run
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Cubin
from kernelpack.toolchain.elf import counted_by_line, inspect
from kernelpack.toolchain.flags import ptxas_arch
from kernelpack.toolchain.scratch import scratch
from kernelpack.toolchain.toolchain import Toolchain

_INPUT, _OUTPUT = "kernel.ptx", "kernel.cubin"
_PLACE = re.compile(r"\.(loc|file)\b")
"""A directive that says where what follows is from. `.local` is none."""
_INSTRUCTION = re.compile(r"(?!.*:$)(\{\s*[@a-z.]|[@a-z])")
"""What begins an instruction, or a scope that has one on its first line, and is no label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCode:
    """An entry's machine code, in numbers.

    Attributes:
        counts: instructions by the line of PTX that they came from, of all entries together.
        registers: of a thread.
        shared_bytes: static shared memory of a CTA.

    """

    counts: Mapping[int, int]
    registers: int
    shared_bytes: int


def assemble(ptx: str, entry: str, toolchain: Toolchain, arch: Arch) -> MachineCode:
    """Assemble a module, and count.

    Args:
        ptx: the module's text.
        entry: the kernel whose registers are asked for.
        toolchain: whose ptxas assembles it.
        arch: what for.

    Raises:
        CompileError: ptxas refuses the text.
        ToolchainError: ptxas did not run, or wrote no line table.

    """
    with scratch() as folder:
        (folder / _INPUT).write_text("\n".join(_numbered(ptx)), encoding="utf-8")
        command = [str(toolchain.ptxas), "-lineinfo", *ptxas_arch(arch), "-o", _OUTPUT, _INPUT]
        done = run(command, cwd=folder)
        if done.returncode:
            raise CompileError(done.stderr.strip()[:2000], where=str(toolchain.ptxas))
        image = (folder / _OUTPUT).read_bytes()
    cubin = Cubin(image=image, target=arch.name, spill_store_bytes=0, spill_load_bytes=0)
    found = inspect(cubin, entry)
    return MachineCode(
        counts=counted_by_line(image), registers=found.registers, shared_bytes=found.shared_bytes
    )


def _numbered(ptx: str) -> Iterator[str]:
    """The text with a `.loc` before each instruction, in place of those that it has."""
    inside = False
    for number, line in enumerate(ptx.splitlines(), 1):
        text = line.lstrip()
        if text.startswith(".section"):
            return
        if _PLACE.match(text):
            continue
        if not inside and _INSTRUCTION.match(text):
            yield f".loc 1 {number} 0"
        yield line
        if text.startswith(".address_size"):
            yield '.file 1 "ptx"'
        inside = _goes_on(text, inside)


def _goes_on(text: str, inside: bool) -> bool:
    """Whether the next line is in the middle of the statement that this one has, or is within."""
    code = text.partition("//")[0].rstrip()
    return inside if not code else not code.endswith((";", "{", "}", ":"))
