"""The specification of the bytes: its page, its numbers, and the code agree."""

import re
from pathlib import Path

import pytest

from kernelpack.bundle import format as bundle_format
from kernelpack.bundle.format import FIELDS, HEADER, INDEX, PART, ROWS, Part, Section
from kernelpack.formats.dtype import DType
from kernelpack.spec.expr import Op

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "bundle.md"
SPECIFICATION = str(bundle_format.__doc__)


def test_the_page_is_the_docstring():
    """docs/reference/bundle.md is the docstring of format.py under a title."""
    assert f"# Bundle files\n\n{SPECIFICATION}" == PAGE.read_text()


def test_sizes():
    """The fixed sizes are those that the specification gives."""
    assert (HEADER.size + 32, PART.size, INDEX.size) == (104, 56, 56)


@pytest.mark.parametrize("section", Section)
def test_rows(section):
    """Every section's tag and stride are in the specification's table."""
    row = f"| {section.name.lower()} | {section.value} | {ROWS[section].size} |"
    assert row in SPECIFICATION


@pytest.mark.parametrize("part", Part)
def test_parts(part):
    """Every part's tag is in the specification's table."""
    assert f"| {part.name.lower()} | {part.value} |" in SPECIFICATION


@pytest.mark.parametrize("kind", FIELDS)
def test_records(kind):
    """Every kind of record is in the specification, and takes as many bytes as it lists."""
    line = re.search(rf"(?ms)^{kind.value}\. \*.*?(?=^\d+\. |\n\n)", SPECIFICATION)
    assert line
    assert FIELDS[kind].size == listed_bytes(line[0])


def listed_bytes(text: str) -> int:
    """The bytes of the fields that a line of the specification lists."""
    fields = text.partition(":")[2].replace("is text", "").replace("i64 value or text", "i64")
    fours = len(re.findall(r"\b(?:u32|ref)\b", fields)) + 3 * len(re.findall(r"\brefs\b", fields))
    return 4 * fours + 8 * len(re.findall(r"\b(?:text|list|i64|f64)\b", fields))


@pytest.mark.parametrize("dtype", DType)
def test_data_types(dtype):
    """Every data type's code is in the specification."""
    assert re.search(rf"\b{dtype.label} {int(dtype)}\b", SPECIFICATION)


@pytest.mark.parametrize("op", Op)
def test_operations(op):
    """Every operation's number is in the specification."""
    assert f"| {int(op)} | " in SPECIFICATION
