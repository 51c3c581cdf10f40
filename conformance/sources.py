"""Fetch the programs' sources: the wheels of `requirements/`, unpacked without dependencies."""

import os
import sys
from pathlib import Path

from kernelpack import process
from kernelpack.errors import ToolchainError

_HERE = Path(__file__).parent
SOURCES = "sources"
"""What most programs need. The compilers of others are large: each has a folder of its own."""


def fetch(root: Path, name: str = SOURCES) -> Path:
    """The folder of the unpacked wheels; it is filled where it is not up to date.

    Args:
        root: where all is kept.
        name: of the folder, and of the file of requirements.

    Raises:
        ToolchainError: pip cannot get them.

    """
    requirements, folder = _HERE / "requirements" / f"{name}.txt", root / name
    stamp = folder / requirements.name
    if not stamp.is_file() or stamp.read_text() != requirements.read_text():
        done = process.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"),
                *("--disable-pip-version-check", "--upgrade", "--target", str(folder)),
                *("-r", str(requirements)),
            ],
            env=dict(os.environ),
        )
        if done.returncode:
            raise ToolchainError(f"pip cannot fetch the sources: {done.stderr[-1000:]}")
        stamp.write_text(requirements.read_text())
    return folder
