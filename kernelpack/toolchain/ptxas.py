"""PTX to cubin by ptxas, always with the same flags, and what it said while it did so.

A warning or a note of lost performance (C7508: setmaxnreg ignored; C7510: wgmma serialised) is a
refusal: the kernel would be right and slow, and nobody would know. Spills are numbers of the
cubin, checked against the manifest by the build.
"""

import re
from collections.abc import Iterator, Sequence

from kernelpack.errors import CompileError, ToolchainError
from kernelpack.process import Completed, run
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Cubin, Ptx
from kernelpack.toolchain.flags import PTXAS_FLAGS, ptxas_arch
from kernelpack.toolchain.known_bad import require_none
from kernelpack.toolchain.lines import Message, place_in_ptx, refusal
from kernelpack.toolchain.scratch import scratch
from kernelpack.toolchain.toolchain import Toolchain

INPUT, OUTPUT = "kernel.ptx", "kernel.cubin"
"""Fixed names in a folder of its own: nothing of this machine reaches the cubin."""

_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_PROBLEM = re.compile(
    r"^ptxas (?:\S*?, line (?P<line>\d+); )?(?P<kind>error|fatal|warning|info)\s*: (?P<what>.*)$"
)
_LOSS = re.compile(r"\(C\d+\)|Potential Performance Loss")
HINTS = {
    "(C7508)": "give the kernel both launch bounds, such as `__launch_bounds__(512, 1)`: "
    "setmaxnreg needs a thread's registers at the start, which follow from threads and blocks",
    "'.scale_vec::4X' not supported": "`.block16` says the same, and compiles for a family too",
    "'.scale_vec::2X' not supported": "`.block32` says the same, and compiles for a family too",
    "'.scale_vec::1X' not supported": "leave it out: a family takes the kind's own size of blocks",
}
"""Hints, by the text of a message."""

_AROUND = re.compile(r"around line (\d+)")
_SUMMARY = "Ptx assembly aborted due to errors"


def assemble(ptx: Ptx, toolchain: Toolchain, arch: Arch) -> Cubin:
    """Machine code of a kernel's PTX.

    Raises:
        CompileError: ptxas has errors, warnings or lost performance to report, at their lines.
        ToolchainError: ptxas is missing, did not run to its end, or made a known mistake; or there
            is no room for temporary files.

    """
    with scratch() as folder:
        (folder / INPUT).write_text(ptx.text, encoding="utf-8")
        command = [str(toolchain.ptxas), *PTXAS_FLAGS, *ptxas_arch(arch), "-o", OUTPUT, INPUT]
        done = run(command, cwd=folder)
        _check(done, ptx)
        spilled = [(int(a), int(b)) for a, b in _SPILLS.findall(done.stderr)]
        cubin = Cubin(
            image=(folder / OUTPUT).read_bytes(),
            target=arch.name,
            spill_store_bytes=sum(stores for stores, _ in spilled),
            spill_load_bytes=sum(loads for _, loads in spilled),
        )
    require_none(cubin, toolchain, _entry(ptx))
    return cubin


def _check(done: Completed, ptx: Ptx) -> None:
    entry = _entry(ptx)
    if done.killed_by:
        raise ToolchainError(
            f"ptxas was killed by {done.killed_by}",
            where=entry,
            hint="SIGKILL mostly means that memory ran out: build with fewer jobs",
        )
    log = done.stdout + done.stderr
    if found := list(messages(log, ptx)):
        raise refusal(found, entry, hint=_hint(found))
    if done.returncode or not _SPILLS.search(log):
        raise CompileError(log.strip() or "ptxas does not say why", where=entry)


def _hint(found: Sequence[Message]) -> str:
    """What would be right, where a message says so."""
    told = (HINTS[words] for words in HINTS if any(words in message.what for message in found))
    return "\n".join(told)


def messages(log: str, ptx: Ptx) -> Iterator[Message]:
    """Complaints of ptxas, at the template's lines where the PTX knows them."""
    for text in log.splitlines():
        found = _PROBLEM.match(text)
        if not found or _SUMMARY in text:
            continue
        if found["kind"] != "info" or _LOSS.search(found["what"]):
            around = _AROUND.search(found["what"])
            line = found["line"] or (around and around[1])
            where = place_in_ptx(ptx.text, int(line)) if line else _entry(ptx)
            yield Message(where=where, what=found["what"])


def _entry(ptx: Ptx) -> str:
    found = re.search(r"\.entry\s+(\w+)", ptx.text)
    return found[1] if found else "ptx"
