"""The C++ loader's expressions are Python's, to the last bit and the last letter of an error."""

import json

import pytest

from kernelpack.spec.expr import Op
from tests.cpp import vectors
from tests.cpp.compiler import ask

WRITTEN = json.loads(vectors.PATH.read_text())
NAMES = [*vectors.SIZES, "unknown"]


def line(vector):
    """A vector as `inspect expressions` reads it."""
    sizes = " ".join(f"{name}={value}" for name, value in vector["sizes"].items())
    words = (
        f"{op}:{NAMES.index(operand) if op == Op.NAME else operand}"
        for op, operand in vector["code"]
    )
    gpcs = " ".join(map(str, vector["gpcs"]))
    return "\t".join([vector["text"], " ".join(NAMES), sizes, " ".join(words), gpcs])


def answer(vector):
    """What must be said of a vector."""
    error = f"error {vector.get('error')}".replace("\n", "\\n")
    return str(vector["value"]) if "value" in vector else error


def test_the_file_is_what_python_says():
    """expressions.json is current: `python -m tests.cpp.vectors` writes it."""
    assert list(vectors.written()) == WRITTEN


@pytest.mark.parametrize("listed", [WRITTEN, vectors.random(4000, seed=1)], ids=["file", "random"])
def test_values_and_errors(inspect, listed):
    """Every vector gives Python's value or Python's error."""
    expected = [answer(vector) for vector in listed]
    assert expected == ask(inspect, "expressions", lines=map(line, listed))
