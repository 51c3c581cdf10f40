"""How a run of all tests reports itself."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
def test_first():
    assert 0

def test_second():
    pass
"""


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_failures_are_named_as_they_happen(tmp_path, workers):
    """A failure is named before the run has ended."""
    (tmp_path / "test_two.py").write_text(TESTS)
    words = ["-q", "-p", "tests.conftest", *workers, "--rootdir", tmp_path, tmp_path]
    run = [sys.executable, "-m", "pytest", *words]
    said = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert "FAILED test_two.py::test_first (call)" in said.partition("= FAILURES =")[0]
    assert "test_second (" not in said
