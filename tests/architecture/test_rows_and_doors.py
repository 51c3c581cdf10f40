"""The house's two rules: rows import rows above, and each outside thing has one door."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "kernelpack"

ROWS = (
    {"errors"},
    {"formats"},
    {"spec", "cache", "files", "process", "installed"},
    {
        "manifest",
        "render",
        "toolchain",
        "machine_code",
        "bundle",
        "emulator",
        "kernels",
        "runtime",
        "workers",
    },
    {"build", "load", "wheel", "kv", "oracle"},
    {"ops", "verify", "check", "emulate"},
    {"device", "frameworks", "predict"},
    {"cli"},
)
"""Parts of one row are strangers; a part may import a row above its own (docs/architecture.md)."""

ALLOWED = {
    "build": {"manifest", "render", "toolchain", "machine_code", "bundle", "workers"},
    "load": {"bundle", "runtime"},
    "wheel": {"bundle", "kernels"},
    "kv": {"kernels"},
    "oracle": {"kernels"},
    "ops": {"load", "kernels", "emulator", "kv"},
    "verify": {"kernels", "bundle", "emulator", "workers"},
    "check": {"build", "bundle", "toolchain", "machine_code"},
    "emulate": {"emulator"},
    "device": {"verify", "ops", "load", "kernels", "bundle", "runtime", "workers"},
    "frameworks": {"ops", "load", "kv"},
    "predict": {"ops", "kernels", "bundle", "emulator", "emulate", "toolchain"},
}
"""What a part above the middle row may take from the parts that are not values."""

DOORS = {
    "subprocess": {"process.py"},
    "jinja2": {"render/environment.py", "render/limits.py"},
    "ruamel": {"manifest/schema.py", "manifest/reader.py"},
    "pydantic": {"manifest/"},
    "elftools": {"toolchain/elf.py"},
    "zstandard": {"bundle/frames.py"},
    "cryptography": {"bundle/ed25519.py"},
    "cuda": {"runtime/driver.py"},
    "filelock": {"cache/"},
    "platformdirs": {"cache/"},
    "ml_dtypes": {"formats/"},
    "distributed": {"build/cluster.py"},
    "fsspec": {"cache/remote.py"},
    "torch": {"frameworks/torch_ops.py"},
    "tvm_ffi": {"frameworks/tvm_ops.py"},
    "click": {"cli/"},
    "rich": {"cli/"},
    "rich_click": {"cli/"},
}
"""The files through which a package outside the standard library comes in, numpy apart."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Every module named by an import statement of a file, at any depth of it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; names are absolute here"
            yield str(node.module)


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def row_of(part: str) -> int:
    return next(index for index, row in enumerate(ROWS) if part in row)


def is_allowed(part: str, other: str) -> bool:
    """Whether `part` may import `other`: itself, a row of values, or what its line allows."""
    if part in ("__init__", "__main__") or part == other or row_of(other) <= 1:
        return True
    below = row_of(other) < row_of(part)
    return below and (row_of(other) <= 2 or part == "cli" or other in ALLOWED.get(part, set()))


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_part_imports_only_rows_above(path: Path) -> None:
    """A part sees the rows above its own, and there only what its line in the table allows."""
    others = [name.split(".")[1] for name in imports(path) if name.startswith("kernelpack.")]
    assert [other for other in others if not is_allowed(part_of(path), other)] == []


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_outside_things_come_in_by_their_door(path: Path) -> None:
    """A package outside the standard library is imported by the files of its door only."""
    own = str(path.relative_to(ROOT))
    outside = {name.split(".")[0] for name in imports(path)} - {"kernelpack", "numpy"}
    guarded = {n for n in outside if n in DOORS or n not in sys.stdlib_module_names}
    assert [n for n in guarded if not own.startswith(tuple(DOORS.get(n, ())) or ("-",))] == []


def test_every_folder_has_a_row() -> None:
    """A new folder is placed in the table before anything can import it."""
    parts = {p.name.removesuffix(".py") for p in ROOT.iterdir() if p.suffix in ("", ".py")}
    known = set().union(*ROWS) | {"__init__", "__main__", "__pycache__", "include", "cmake", "data"}
    assert parts - known == set()


def texts_of_the_locale() -> Iterator[str]:
    """Calls that read or write text and do not say how it is encoded."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(attr="read_text" | "write_text"), keywords=given):
                    if all(keyword.arg != "encoding" for keyword in given):
                        yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_files_are_utf8():
    """What a file holds does not depend on the locale; a wheel's RECORD is read by importlib."""
    assert [place.partition(":")[0] for place in texts_of_the_locale()] == ["toolchain/wheels.py"]
