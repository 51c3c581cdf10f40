"""Fetch the programs' sources: the wheels of `requirements.txt`, unpacked without dependencies."""

import os
import sys
from pathlib import Path

from kernelpack import process
from kernelpack.errors import ToolchainError

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
_STAMP = "requirements.txt"


def fetch(root: Path) -> Path:
    """The folder of the unpacked wheels; it is filled where it is not up to date.

    Raises:
        ToolchainError: pip cannot get them.

    """
    folder = root / "sources"
    stamp = folder / _STAMP
    if not stamp.is_file() or stamp.read_text() != REQUIREMENTS.read_text():
        done = process.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"),
                *("--disable-pip-version-check", "--upgrade", "--target", str(folder)),
                *("-r", str(REQUIREMENTS)),
            ],
            env=dict(os.environ),
        )
        if done.returncode:
            raise ToolchainError(f"pip cannot fetch the sources: {done.stderr[-1000:]}")
        stamp.write_text(REQUIREMENTS.read_text())
    return folder
