"""Keys and types of a manifest: one thing wrong is one error that says so."""

import pytest

from kernelpack.errors import ManifestError
from kernelpack.manifest.reader import parse
from kernelpack.manifest.schema import load_document
from tests.manifest.small import TEXT, mistake


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("abi: 3", "abi: 0", "must be greater than or equal to 1"),
        ("abi: 3", "abi: '3'", "must be an integer"),
        ("abi: 3", "abi: true", "must be an integer"),
        ("abi: 3", "abi: [3]", "must be an integer"),
        ("abi: 3\n", "", "key `abi` is missing"),
        ("kernel: small", "kernel: Small", "`Small` is not a lower_case name"),
        ("doc: Rows", 'doc: ""\nDoc: Rows', "unknown key `Doc`"),
        ("targets: [sm_100a, sm_90a]", "targets: []", "has too few entries"),
        ("targets: [sm_100a", "targets: [sm_100", "`sm_100` is not one of"),
        ("  m: rows", "  M: rows", "`M` is not a lower_case name"),
        ("kernel: small", f"kernel: {'s' * 65}", "is not a lower_case name"),
        ("  TILE: ", "  Tile: ", "`Tile` is not an UPPER_CASE name of a constant"),
        ("[16, 64]", "[16, true]", "`True` is neither an integer nor a word"),
        ("[16, 64]", "[]", "has too few entries"),
        ("[16, 64]", "16", "must be a list"),
        ("[direct, staged]", "[direct, a-b]", "`a-b` is neither an integer nor a word"),
        ("cdiv(m, TILE)", "cdiv(m)", "`cdiv` takes 2 arguments, not 1"),
        ("cdiv(m, TILE)", "m / TILE", "is not allowed in an integer expression"),
        ("access: write", "access: wrote", "`wrote` is not one of read, write, read_write"),
        ("align: 4", "align: 0", "must be greater than or equal to 1"),
        ("align: 4", "align: 3", "`3` is not an alignment"),
        ("pointer: y", "point: y", "a parameter must have one of `map`, `pointer`, `scalar`"),
        ("swizzle: 128B", "swizzle: 128b", "`128b` is not one of none, 32B"),
        ("block: [128, 1, 1]", "block: [128, 1]", "must have three entries: x, y, z"),
        ("block: [128, 1, 1]", "block: [128, 1, 1, 1]", "has too many entries"),
        ("programmatic: true", "programmatic: yes", "must be true or false"),
        ("programmatic: true", "programmatic: 1", "must be true or false"),
        ("cost: waves * TILE", "cost: true", "must be an integer or an expression"),
        ("cost: waves * TILE", "cost:", "must be an integer or an expression"),
        ("cost: waves * TILE", "cost: [1]", "must be an integer or an expression"),
        ("cost: waves * TILE", "cost: 9999999999999999999", "does not fit in 64 bits"),
        ("budget: {", "budget: {smem: 1, ", "unknown key `smem`"),
        ("reason: k must", "why: k must", "unknown key `why`"),
        ("reason: k must be a multiple of 8", 'reason: ""', "must not be empty"),
        ("{when: k % 8 == 0, ", "{", "key `when` is missing"),
    ],
)
def test_mistake(old, new, what):
    """A key that is unknown or missing, and a value of another type, are named."""
    assert what in mistake(old, new).what


def test_the_first_of_several_mistakes():
    """Of several, the first by line is reported, and how many there are."""
    text = TEXT.replace("abi: 3", "abi: x").replace("programmatic: true", "programmatic: no")
    with pytest.raises(ManifestError, match="the first of 2 mistakes") as error:
        load_document(parse(text, "small.yaml"))
    assert error.value.where == "small.yaml:3:6"
