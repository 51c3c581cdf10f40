"""Values that cross a border between the stages of a build: source → PTX → cubin, and resources."""

from dataclasses import dataclass, field
from hashlib import sha256

from kernelpack.spec.params import Slot


def digest(data: bytes | str) -> str:
    """SHA-256 as lower-case hex; the name of every artifact."""
    return sha256(data.encode() if isinstance(data, str) else data).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A header that a source includes: its path under `templates/include/`, and its text."""

    path: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A template that a source was filled from: its path under `templates/`, and its text."""

    path: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A rendered template, with the headers it reaches and all the templates it was filled from.

    `name` is the template's path under `templates/`, which `#line` directives speak of.
    """

    variant_id: str
    entry: str
    name: str
    text: str = field(repr=False)
    headers: tuple[Header, ...] = field(repr=False)
    parts: tuple[Part, ...] = field(default=(), repr=False)

    @property
    def digest(self) -> str:
        """The text and every header that it reaches."""
        parts = [digest(self.text), *(f"{h.path} {digest(h.text)}" for h in self.headers)]
        return digest("\n".join(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ptx:
    """The PTX that ptxas assembles and the emulator runs; paths in it are normalised."""

    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        """The joint of the system: half of the key of every verification result."""
        return digest(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cubin:
    """Machine code as ptxas wrote it, and what `ptxas -v` said of spills (bytes a thread)."""

    image: bytes = field(repr=False)
    target: str
    spill_store_bytes: int
    spill_load_bytes: int

    @property
    def digest(self) -> str:
        """SHA-256 of the image."""
        return digest(self.image)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """A kernel's resources: from the cubin's ELF, spills from `ptxas -v`; bytes."""

    entry: str
    target: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int
    slots: tuple[Slot, ...]
