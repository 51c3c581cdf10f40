"""The lint of a build: machine code is looked at while the compilers make more of it.

nvdisasm takes a third of a second to start, and little for each variant then, since variants have
most instructions in common. So variants are looked at many at a time, by a thread of the process
that waits for the compilers. The cache keeps findings under the digest of the cubin.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from kernelpack.cache.key import code_digest
from kernelpack.cache.store import ContentError, Store
from kernelpack.errors import CacheError, CompileError
from kernelpack.machine_code.disassembler import Disassembler
from kernelpack.machine_code.instruction import Kernel
from kernelpack.machine_code.lint import Finding, Findings, lint, rules
from kernelpack.spec.artifact import Cubin, digest
from kernelpack.toolchain.elf import branches_of, code_of

BATCH = 32
"""How many variants are looked at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A variant's cubin, and the entry in it that is looked at."""

    variant_id: str
    entry: str
    cubin: Cubin


Look = Callable[[Sequence[Made], Disassembler], list[Findings]]


def look(made: Sequence[Made], disassembler: Disassembler) -> list[Findings]:
    """The findings of each.

    Raises:
        ToolchainError: an image is not a cubin, or nvdisasm cannot read one.

    """
    return lint([_kernel(m.entry, m.cubin) for m in made], disassembler)


def _kernel(entry: str, cubin: Cubin) -> Kernel:
    return Kernel(
        entry=entry,
        target=cubin.target,
        code=code_of(cubin.image, entry),
        branches=branches_of(cubin.image, entry),
    )


class Lints:
    """The lint of one build.

    Args:
        store: where findings are kept.
        disassembler: None where there is none: nothing is looked at then.
        look: what finds them; tests put another in its place.

    """

    def __init__(self, store: Store, disassembler: Disassembler | None, look: Look = look) -> None:
        self._store, self._disassembler, self._look = store, disassembler, look
        self._waiting: list[Made] = []
        self._found: list[tuple[Made, Findings]] = []
        self._running: list[Future[list[tuple[Made, Findings]]]] = []
        self._thread = ThreadPoolExecutor(1)

    def add(self, made: Made) -> None:
        """Have a variant looked at, unless it is known what is in it."""
        if self._disassembler is None:
            return
        held = self._store.known(_key(made, self._disassembler), _decode)
        if held is not None:
            self._found.append((made, held))
            return
        self._waiting.append(made)
        if len(self._waiting) == BATCH:
            self._begin()

    def findings(self) -> Iterator[tuple[Made, Findings]]:
        """The findings of each added variant; waits for all.

        Raises:
            ToolchainError: as of `look`.

        """
        self._begin()
        with self._thread:
            yield from self._found
            for future in self._running:
                yield from future.result()

    def _begin(self) -> None:
        if self._waiting and self._disassembler:
            batch = (self._waiting, self._disassembler)
            self._running.append(self._thread.submit(self._run, *batch))
        self._waiting = []

    def _run(self, made: Sequence[Made], disassembler: Disassembler) -> list[tuple[Made, Findings]]:
        found = list(zip(made, self._look(made, disassembler), strict=True))
        with suppress(CacheError):  # one that only serves costs the next build this step
            for one, findings in found:
                self._store.offer(_key(one, disassembler), _encode(findings))
        return found


def refusal(made: Made, findings: Findings) -> CompileError | None:
    """The error of a variant that must not be shipped; None if it may be."""
    refused = [finding for finding in findings if finding.is_refused]
    if not refused:
        return None
    what = "\n".join(map(str, refused))
    return CompileError(what, where=made.variant_id, hint=refused[0].rule.hint)


def _key(made: Made, disassembler: Disassembler) -> str:
    """The machine code, and all that reads it."""
    parts = [made.cubin.digest, made.entry, str(disassembler), code_digest("machine_code")]
    return digest(json.dumps(["lint", *parts]))


def _encode(findings: Findings) -> bytes:
    return json.dumps([[f.rule.id, list(f.offsets)] for f in findings]).encode()


def _decode(held: bytes) -> Findings:
    try:
        return tuple(
            Finding(rule=rules()[name], offsets=tuple(offsets))
            for name, offsets in json.loads(held)
        )
    except (ValueError, LookupError, TypeError) as error:
        raise ContentError("the cache holds something else than findings") from error
