"""A manifest that holds together is read; every mistake is named, at its line and column."""

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpack.errors import ManifestError
from kernelpack.manifest.reader import parse, read
from kernelpack.manifest.schema import json_schema, load, load_document

SMALL = Path(__file__).with_name("small.yaml")
TEXT = SMALL.read_text()
QUOTE = "quote it: within […] or {…} a comma ends an entry"
PUBLISHED = Path(__file__).parents[2] / "docs/reference/manifest.schema.json"


def mistake(old: str, new: str) -> ManifestError:
    """The error of the small manifest with `old` replaced once by `new`."""
    assert old in TEXT
    with pytest.raises(ManifestError) as error:
        load_document(parse(TEXT.replace(old, new, 1), "small.yaml"))
    return error.value


def test_small_is_read():
    """A manifest in order is read as typed values."""
    manifest = load(SMALL)
    assert (manifest.kernel, list(manifest.axes), manifest.launch.programmatic) == (
        "small",
        ["DTYPE", "PATH", "TILE"],
        True,
    )


def test_a_manifest_knows_where_it_stands():
    """Every value and every key has its line and column."""
    manifest = load(SMALL)
    assert manifest.at("cost") == f"{SMALL}:{line('cost:')}:7"
    assert manifest.at("axes", "TILE", 1) == f"{SMALL}:{line('  TILE: ')}:14"
    assert manifest.at("axes", "TILE", key=True) == f"{SMALL}:{line('  TILE: ')}:3"


def line(start: str) -> int:
    """The line of the small manifest that starts like this."""
    return next(n for n, text in enumerate(TEXT.split("\n"), 1) if text.startswith(start))


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
        ("targets: [sm_100a", "targets: [sm_90a", "target `sm_90a` is given twice"),
        ("targets: [sm_100a", "targets: [sm_100", "`sm_100` is none of"),
        ("  m: rows", "  M: rows", "`M` is not a lower_case name"),
        ("  m: rows", "  if: rows", "`if` is a word of expressions"),
        ("  m: rows", "  min: rows", "`min` is a function"),
        ("  m: rows", "  sm_count: rows", "`sm_count` is given by the target or the device"),
        ("  TILE: ", "  SM: ", "`SM` is given by the target or the device"),
        ("  TILE: ", "  Tile: ", "`Tile` is not an UPPER_CASE name of a constant"),
        ("[16, 64]", "[16, 16]", "`16` is given twice"),
        ("[16, 64]", "[16, wide]", "mixes integers and words"),
        ("[16, 64]", "[16, true]", "`True` is neither an integer nor a word"),
        ("[16, 64]", "[]", "has too few entries"),
        ("[16, 64]", "16", "must be a list"),
        ("[direct, staged]", "[direct, a-b]", "`a-b` is neither an integer nor a word"),
        ("TILE_BYTES: 128 * TILE", "TILE: 128", "`TILE` is already defined under `axes`"),
        ("  tiles: cdiv(m, TILE)", "  m: cdiv(m, TILE)", "`m` is already defined under `sizes`"),
        ("PATH == 'direct'", "PATH == 'dircet'", "no axis has the value 'dircet'"),
        ("TILE_BYTES: 128 * TILE", "TILE_BYTES: 128 * TIEL", "unknown name `TIEL`"),
        ("TILE_BYTES: 128 * TILE", "TILE_BYTES: 128 * m", "unknown name `m`"),
        ("TILE_BYTES: 128 * TILE", "TILE_BYTES: STAGES", "`STAGES` is not known yet here"),
        ("tiles: cdiv(m, TILE)", "tiles: waves", "`waves` is not known yet here"),
        ("cdiv(m, TILE)", "cdiv(m)", "`cdiv` takes 2 arguments, not 1"),
        ("cdiv(m, TILE)", "m / TILE", "is not allowed in an integer expression"),
        (", sm_90a: small/plain.cu.j2", "", "target `sm_90a` has no template"),
        ("{sm_100a: small/", "{sm_103a: x, sm_100a: small/", "`sm_103a` is not a target"),
        ("dtype: fp32", "dtype: fp23", "`fp23` is not a type that fits here"),
        ("dtype: fp32", "dtype: PATH", "`direct` is not a type that fits here"),
        ("element: DTYPE", "element: fp4", "`fp4` is not a type that fits here"),
        ("scalar: u32", "scalar: fp32", "`fp32` is not a type that fits here"),
        ("access: write", "access: wrote", "`wrote` is none of read, write, read_write"),
        ("align: 4", "align: 0", "must be greater than or equal to 1"),
        ("over: x", "over: z", "unknown argument `z`"),
        ("pointer: y", "pointer: z", "unknown argument `z`"),
        ("pointer: y", "point: y", "a parameter must have one of `map`, `pointer`, `scalar`"),
        ("name: y, ", "name: scales, ", "parameter `scales` is given twice"),
        ("  - {name: y, pointer: y}\n", "", "argument `y` reaches no parameter"),
        ("box: [64, TILE]", "box: [64]", "`box` has 1 entries, but `dims` has 2"),
        ("strides_bytes: [2 * k]", "strides_bytes: [2, k]", "`strides_bytes` has 2 entries"),
        ("      strides_bytes: [2 * k]\n", "", "`strides_bytes` has 0 entries"),
        ("swizzle: 128B", "element_strides: [1]", "`element_strides` has 1 entries"),
        ("swizzle: 128B", "swizzle: 128b", "`128b` is none of none, 32B"),
        ("block: [128, 1, 1]", "block: [128, 1]", "must have three entries: x, y, z"),
        ("block: [128, 1, 1]", "block: [128, 1, 1, 1]", "has too many entries"),
        ("programmatic: true", "programmatic: yes", "must be true or false"),
        ("programmatic: true", "programmatic: 1", "must be true or false"),
        ("cost: waves * TILE", "cost: true", "must be an integer or an expression"),
        ("cost: waves * TILE", "cost:", "must be an integer or an expression"),
        ("cost: waves * TILE", "cost: [1]", "must be an integer or an expression"),
        ("cost: waves * TILE", "cost: 9999999999999999999", "does not fit in 64 bits"),
        ("registers: 64", "registers: m", "unknown name `m`"),
        ("budget: {", "budget: {smem: 1, ", "unknown key `smem`"),
        ("reason: k must", "why: k must", "unknown key `why`"),
        ("reason: k must be a multiple of 8", 'reason: ""', "must not be empty"),
        ("{when: k % 8 == 0, ", "{", "key `when` is missing"),
    ],
)
def test_mistake(old, new, what):
    """One thing wrong is one error that says so."""
    assert what in mistake(old, new).what


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "hint"),
    [
        ("abi: 3", "abi: x", 3, 6, ""),
        ("axes:", "axis:", 10, 1, "did you mean `axes`?"),
        ("cdiv(m, TILE)", "cdiv(m, TILES)", 22, 10, "did you mean `TILE`?"),
        ("PATH == 'direct'", "PATH == 'dircet'", 15, 12, "did you mean `direct`?"),
        ("dtype: fp32", "dtype: fp23", 28, 19, "did you mean `fp32`?"),
        ("over: x", "over: scale", 32, 13, "did you mean `scales`?"),
        ("[sm_100a, sm_90a]", "[sm_100a, sm_90]", 5, 20, "did you mean `sm_90a`?"),
        ("swizzle: 128B", "swizle: 128B", 37, 7, "did you mean `swizzle`?"),
        ("swizzle: 128B", "swizzle: 128b", 37, 16, "did you mean `128B`?"),
        ("  TILE: ", "  tile: ", 13, 3, "names here match [A-Z][A-Z0-9_]*"),
        ("box: [64, TILE]", "box: [64]", 36, 12, "give 2"),
        ("shape: [m, k], access", "shape: [cdiv(m, 2)], access", 26, 29, QUOTE),
    ],
)
def test_mistake_says_where_and_what_would_be_right(old, new, line, column, hint):
    """The error stands at the line and column of the mistake, with the word that was meant."""
    error = mistake(old, new)
    assert (error.where, error.hint) == (f"small.yaml:{line}:{column}", hint)


def test_the_first_of_several_mistakes():
    """Of several, the first by line is told, and how many there are."""
    text = TEXT.replace("abi: 3", "abi: x").replace("programmatic: true", "programmatic: no")
    with pytest.raises(ManifestError, match="the first of 2 mistakes") as error:
        load_document(parse(text, "small.yaml"))
    assert error.value.where == "small.yaml:3:6"


def test_an_axis_that_nothing_names():
    """An axis that no expression and no type names would make variants without a difference."""
    error = mistake("  TILE: ", "  SPARE: [1, 2]\n  TILE: ")
    assert error.what == "axis `SPARE` is never used: nothing tells its 2 values apart"


def test_an_axis_of_one_value_may_be_for_the_template_alone():
    """A single value makes no variants, so that the manifest need not name it."""
    assert load_document(parse(TEXT.replace("  TILE: ", "  SPARE: [1]\n  TILE: "), "m"))


def test_the_published_schema_is_current():
    """docs/reference/manifest.schema.json is what the models say."""
    assert PUBLISHED.read_text() == json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def test_the_small_manifest_meets_the_published_schema():
    """What we read, an editor with the JSON Schema accepts."""
    plain = json.loads(json.dumps(read(SMALL).value))
    assert jsonschema.validate(plain, json_schema()) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("axes:", "axis:"),
        ("abi: 3", "abi: x"),
        ("swizzle: 128B", "swizzle: 128b"),
        ("  TILE: ", "  tile: "),
        ("pointer: y", "point: y"),
        ("block: [128, 1, 1]", "block: [128, 1]"),
    ],
)
def test_the_published_schema_refuses_what_we_refuse(old, new):
    """A mistake of keys and types is one for an editor too."""
    plain = json.loads(json.dumps(parse(TEXT.replace(old, new, 1), "m").value))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(plain, json_schema())


LINES = TEXT.split("\n")


@given(st.integers(0, len(LINES) - 1), st.text(max_size=30))
def test_a_garbled_line_is_read_or_refused_by_name(index, garbage):
    """Whatever stands in a line, the answer is a manifest or a ManifestError with a place."""
    text = "\n".join([*LINES[:index], garbage, *LINES[index + 1 :]])
    assert refusal(text) is None or refusal(text).where.startswith("small.yaml")


@given(st.integers(0, len(TEXT)), st.integers(0, 40))
def test_a_manifest_with_a_hole_is_read_or_refused_by_name(start, count):
    """Whatever is missing, the answer is a manifest or a ManifestError with a place."""
    text = TEXT[:start] + TEXT[start + count :]
    assert refusal(text) is None or refusal(text).where.startswith("small.yaml")


def refusal(text: str) -> ManifestError | None:
    try:
        load_document(parse(text, "small.yaml"))
    except ManifestError as error:
        return error
    return None
