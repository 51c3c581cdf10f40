"""Every test under tests/ is collected: no folder is passed over for its name."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copy

ROOT = Path(__file__).parents[2]
CONFIGURATION = ("pyproject.toml", "tests/conftest.py")
"""What decides which files pytest reads."""


def modules(*, gpu: bool) -> list[str]:
    found = (path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py"))
    return sorted(str(path) for path in found if gpu or path.parts[1] != "gpu")


def collected(folder: Path) -> list[str]:
    """The modules that pytest reads in a tree like ours, of which each has one empty test."""
    for name in (*CONFIGURATION, *modules(gpu=True)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("def test() -> None: ...\n")
    for name in CONFIGURATION:
        copy(ROOT / name, folder / name)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, env=alone, capture_output=True, text=True, check=True
    )
    return sorted(line.partition(":")[0] for line in done.stdout.splitlines() if line)


def test_every_test_is_collected(tmp_path: Path) -> None:
    """`make test` runs every module but those that need a GPU."""
    assert modules(gpu=False) == collected(tmp_path)
