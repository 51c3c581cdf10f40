"""A manifest that holds together is read; every mistake is named, at its line and column."""

import json

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpack.errors import ManifestError
from kernelpack.manifest.reader import parse, read
from kernelpack.manifest.schema import json_schema, load, load_document
from tests.manifest.small import PATH, TEXT, changed, mistake

QUOTE = "quote it: within […] or {…} a comma ends an entry"


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("twice/twice.yaml", "the kernel is called `small`, and its folder `twice`"),
        ("x/y.yaml", ""),
    ],
)
def test_a_folder_of_another_name(tmp_path, file, what):
    """A kernel in a folder of its own has its name; one among others may be in any file."""
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text(TEXT)
    if not what:
        assert load(path).kernel == "small"
        return
    with pytest.raises(ManifestError, match=what) as caught:
        load(path)
    assert caught.value.where == f"{path}:2:9"


def test_small_is_read():
    """A manifest in order is read as typed values."""
    manifest = load(PATH)
    assert (manifest.kernel, list(manifest.axes), manifest.launch.programmatic) == (
        "small",
        ["DTYPE", "PATH", "TILE"],
        True,
    )


def test_a_manifest_knows_where_it_stands():
    """Every value and every key has its line and column."""
    manifest = load(PATH)
    assert manifest.at("cost") == f"{PATH}:{line('cost:')}:7"
    assert manifest.at("axes", "TILE", 1) == f"{PATH}:{line('  TILE: ')}:14"
    assert manifest.at("axes", "TILE", key=True) == f"{PATH}:{line('  TILE: ')}:3"


def line(start: str) -> int:
    """The line of the small manifest that starts like this."""
    return next(n for n, text in enumerate(TEXT.split("\n"), 1) if text.startswith(start))


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "hint"),
    [
        ("abi: 3", "abi: x", 3, 6, ""),
        ("axes:", "axis:", 10, 1, "did you mean `axes`?"),
        ("cdiv(m, TILE)", "cdiv(m, TILES)", 21, 10, "did you mean `TILE`?"),
        ("PATH == 'direct'", "PATH == 'dircet'", 15, 12, "did you mean `direct`?"),
        ("dtype: fp32", "dtype: fp23", 34, 19, "did you mean `fp32`?"),
        ("over: x", "over: scale", 38, 13, "did you mean `scales`?"),
        ("[sm_100a, sm_90a]", "[sm_100a, sm_90]", 5, 20, "did you mean `sm_90a`?"),
        ("swizzle: 128B", "swizle: 128B", 43, 7, "did you mean `swizzle`?"),
        ("swizzle: 128B", "swizzle: 128b", 43, 16, "did you mean `128B`?"),
        ("  TILE: ", "  tile: ", 13, 3, "names here match [A-Z][A-Z0-9_]{0,63}"),
        ("box: [64, TILE]", "box: [64]", 42, 12, "give 2"),
        ("shape: [m, k], access", "shape: [cdiv(m, 2)], access", 32, 29, QUOTE),
    ],
)
def test_mistake_says_where_and_what_would_be_right(old, new, line, column, hint):
    """The error is at the line and column of the mistake, with the word that was meant."""
    error = mistake(old, new)
    assert (error.where, error.hint) == (f"small.yaml:{line}:{column}", hint)


def test_the_small_manifest_meets_the_published_schema():
    """What we read, an editor with the JSON Schema accepts."""
    plain = json.loads(json.dumps(read(PATH).value))
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
        ("  hopper:", "  ampere:"),
        ("    template: small", "    templates: small"),
    ],
)
def test_the_published_schema_refuses_what_we_refuse(old, new):
    """A mistake of keys and types is one for an editor too."""
    plain = json.loads(json.dumps(parse(changed(old, new), "m").value))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(plain, json_schema())


LINES = TEXT.split("\n")


@settings(deadline=None)
@given(st.integers(0, len(LINES) - 1), st.text(max_size=30))
def test_a_garbled_line_is_read_or_refused_by_name(index, garbage):
    """Whatever is in a line, the answer is a manifest or a ManifestError with a place."""
    text = "\n".join([*LINES[:index], garbage, *LINES[index + 1 :]])
    assert refusal(text) is None or refusal(text).where.startswith("small.yaml")


@settings(deadline=None)
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
