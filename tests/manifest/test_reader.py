"""YAML as plain values with places: what a word means, and what is refused as ambiguous."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpack.errors import ManifestError
from kernelpack.manifest.reader import MAX_CHARACTERS, parse, read


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("true", True),
        ("True", "True"),
        ("null", None),
        ("~", None),
        ("none", "none"),
        ("", None),
        ("12", 12),
        ("-12", -12),
        ("0x1F", 31),
        ("0o17", 15),
        ("'12'", "12"),
        ('"12"', "12"),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("128B", "128B"),
        ("k % 8 == 0", "k % 8 == 0"),
        ("a == 'b'", "a == 'b'"),
        ("[1, a, [2]]", (1, "a", (2,))),
        ("{x: 1, y: {z: no}}", {"x": 1, "y": {"z": "no"}}),
        (">-\n    two\n    lines", "two lines"),
    ],
)
def test_value(text, value):
    """A scalar means one thing, by the rules of YAML 1.2 and never those of 1.1."""
    assert parse(f"a: {text}", "m.yaml").value == {"a": value}


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        ("a: 010", 1, 4, "`010` is not a 64-bit integer"),
        ("a: 1e3", 1, 4, "`1e3` is not a 64-bit integer"),
        ("a: 1.5", 1, 4, "`1.5` is not a 64-bit integer"),
        ("a: .inf", 1, 4, "`.inf` is not a 64-bit integer"),
        ("a: 123456789012345678901", 1, 4, "is not a 64-bit integer"),
        ("a: 1\nb: 2\na: 3", 3, 1, "`a` is given twice, first in line 1"),
        ("a: {b: 1, b: 2}", 1, 11, "`b` is given twice, first in line 1"),
        ("a: &x 1", 1, 4, "anchors and aliases are not allowed"),
        ("a: &x [1]\nb: *x", 1, 4, "anchors and aliases are not allowed"),
        ("a: !thing 1", 1, 4, "tag `!thing` is not allowed"),
        ("a: !!python/name:os.system x", 1, 4, "is not allowed"),
        ("a: !!set {b}", 1, 4, "is not allowed"),
        ("a: [1", 1, 6, "is not YAML: while parsing a flow sequence"),
        ("\ta: 1", 1, 1, "is not YAML"),
        ("a: 'x", 1, 6, "is not YAML: while scanning a quoted scalar"),
        ("a: 1\n---\nb: 2", 2, 1, "is not YAML: expected a single document"),
        ("1: a", 1, 1, "a key must be a word"),
        ("? [a]\n: b", 1, 3, "a key must be a word"),
        ("true: a", 1, 1, "a key must be a word"),
        ("a: " + "[" * 40 + "]" * 40, 1, 36, "is nested deeper than 32"),
    ],
)
def test_refused(text, line, column, what):
    """What is not YAML, or means two things to two readers, is refused where it is."""
    with pytest.raises(ManifestError) as error:
        parse(text, "m.yaml")
    assert what in error.value.what
    assert error.value.where == f"m.yaml:{line}:{column}"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("a: \x01", "is not YAML"),
        ("[" * 5000, "is not YAML"),
        ("x" * (MAX_CHARACTERS + 1), "longer than"),
    ],
)
def test_refused_as_a_whole(text, what):
    """A text without a place to point at is refused by its path."""
    with pytest.raises(ManifestError, match=what) as error:
        parse(text, "m.yaml")
    assert error.value.where.startswith("m.yaml")


@pytest.mark.parametrize("data", [b"a: \xff\xfe", b"\x80"])
def test_bytes_that_are_no_text(tmp_path, data):
    """A file that is no UTF-8 is refused by its path."""
    path = tmp_path / "m.yaml"
    path.write_bytes(data)
    with pytest.raises(ManifestError, match="cannot be read"):
        read(path)


def test_a_missing_file(tmp_path):
    """A file that is not there is refused by its path."""
    with pytest.raises(ManifestError, match="cannot be read") as error:
        read(tmp_path / "none.yaml")
    assert error.value.where == str(tmp_path / "none.yaml")


DOCUMENT = parse("a:\n  - x\n  - {b: 1, c: 2}\n", "m.yaml")


@pytest.mark.parametrize(
    ("location", "key", "place"),
    [
        ((), False, "m.yaml:1:1"),
        (("a",), True, "m.yaml:1:1"),
        (("a",), False, "m.yaml:2:3"),
        (("a", 0), False, "m.yaml:2:5"),
        (("a", 1, "c"), True, "m.yaml:3:12"),
        (("a", 1, "c"), False, "m.yaml:3:15"),
        (("a", 1, "none"), False, "m.yaml:3:5"),
        (("a", "a tag", 1, "b"), False, "m.yaml:3:9"),
    ],
)
def test_at(location, key, place):
    """A location is a line and a column; what is not there is passed over."""
    assert place == DOCUMENT.at(*location, key=key)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_by_name(text):
    """No text makes anything but a document or a ManifestError."""
    assert refusal(text).where.startswith("m.yaml")


@settings(deadline=None)
@given(st.text(alphabet="ab:-[]{},&*!|>'\"#%? \n\t01.", max_size=60))
def test_any_yaml_like_text_is_read_or_refused_by_name(text):
    """Nor does a text of YAML's own signs."""
    assert refusal(text).where.startswith("m.yaml")


def refusal(text: str) -> ManifestError:
    """The error of a text; of one that is read, a stand-in."""
    try:
        parse(text, "m.yaml")
    except ManifestError as error:
        return error
    return ManifestError("was read", where="m.yaml")


def test_a_pipe(tmp_path):
    """What is no file is refused before it is read: a pipe would wait for a writer."""
    os.mkfifo(tmp_path / "m.yaml")
    with pytest.raises(ManifestError, match="is not a regular file"):
        read(tmp_path / "m.yaml")


def test_a_folder(tmp_path):
    """Nor is a folder a manifest."""
    with pytest.raises(ManifestError, match="is not a regular file"):
        read(tmp_path)


def test_a_large_file(tmp_path):
    """A file beyond the limit is refused by its size, unread."""
    with (tmp_path / "m.yaml").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ManifestError, match="longer than 4194304 bytes"):
        read(tmp_path / "m.yaml")
