"""C++ programs of these tests: compiled once, fed with lines, answering with lines.

Where a compiler, its sanitizers or zstd's development files are missing, what needs them is
skipped by name: see `.ci/README.md`.
"""

import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from kernelpack.cache.key import Key
from kernelpack.spec.artifact import digest
from kernelpack.spec.params import layout
from kernelpack.spec.variant import Variant
from tests.fakes.bundles import entry, write_bundle
from tests.host import need_compiler
from tests.kept import ROOT, STORE, folder_digest

HERE = Path(__file__).parent
INCLUDE = ROOT / "kernelpack" / "include"
WARNINGS = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-command-line-argument")
CODE = (".c", ".cpp", ".h", ".hpp")
OTHER_HEADERS = [path for path in (Path("/usr/include/zstd.h"),) if path.exists()]
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compile_program(
    source: Path, output: Path, *flags: str, compiler: str = "g++", libraries: Sequence[str] = ()
) -> Path:
    """Compile one source, with everything that warns an error; a program is kept between runs."""
    need_compiler(compiler, flags)
    command = [compiler, *WARNINGS, f"-I{INCLUDE}", *flags]
    end = [*libraries, "-lzstd", "-ldl", "-pthread"]
    parts = (
        ("compiler", version(compiler)),
        ("command", " ".join(command)),
        ("headers", folder_digest(INCLUDE, CODE)),
        *((f"header of {path}", digest(path.read_bytes())) for path in OTHER_HEADERS),
        *((path.name, digest(path.read_bytes())) for path in (source, *map(Path, libraries))),
        *_beside(source),
    )
    program = STORE.make_once(
        Key(parts=parts).digest, lambda: _compile([*command, source, "-o", output, *end], output)
    )
    if program:
        output.write_bytes(program)
        output.chmod(0o755)
    return output


def _beside(source: Path) -> Iterable[tuple[str, str]]:
    """The files of the project that a source of the project may include."""
    return [("beside", folder_digest(source.parent, CODE))] if ROOT in source.parents else []


def _compile(command: Sequence[str | Path], output: Path) -> bytes:
    """The program; nothing where only the syntax is looked at."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return output.read_bytes() if output.exists() else b""


@cache
def version(program: str) -> str:
    """What a compiler says that it is."""
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


def ask(program: Path, *words: object, lines: Iterable[str] = ()) -> list[str]:
    """Run a program on lines; its answers. It must leave in order, nothing on standard error."""
    done = subprocess.run(
        [str(program), *map(str, words)],
        input="".join(f"{line}\n" for line in lines).encode(),
        capture_output=True,  # bytes: as text, a carriage return would end a line
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().split("\n")[:-1]


def said(error: Exception) -> str:
    """An error as the programs print it."""
    return f"error {error}".replace("\n", "\\n")


def sizes_of(variant: Variant) -> bytes:
    """Machine code as the stand-in takes it: the size of each parameter."""
    return " ".join(str(slot.size) for slot in layout(variant.params)).encode()


def written(path: Path, variants: Iterable[Variant], *, release: str = "13.0") -> Path:
    """A bundle of machine code for the stand-in."""
    made = [entry(variant, image=sizes_of(variant)) for variant in variants]
    return write_bundle(path, made, release=release)
