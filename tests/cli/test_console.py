"""How the command line speaks."""

import json

import pytest

from kernelpack.cli import console
from kernelpack.errors import KernelpackError


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (1_234_567, "1.2 MB"), (5e12, "5000.0 GB")],
)
def test_size(count, expected):
    """Bytes in decimal units."""
    assert console.size(count) == expected


def test_table(capsys):
    """Words to the left, numbers to the right, no blanks at the end."""
    console.print_table(("name", "bytes"), [("a", 5), ("longer", 12345)])
    assert capsys.readouterr().out == "name    bytes\na           5\nlonger  12345\n"


HOSTILE = "a\x1b[2Jb\rc\x7f\x9b\u202ed"
SHOWN = "a\\x1b[2Jb\\rc\\x7f\\x9b\\u202ed"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (lambda text: console.print_table(("id",), [(text,)]), f"id\n{SHOWN}\n"),
        (lambda text: console.print_table(("id",), [(f"{text}\nx",)]), f"id\n{SHOWN}\\nx\n"),
        (lambda text: console.print_facts({"id": f"{text}\nx"}), f"id  {SHOWN}\\nx\n"),
        (console.show, f"{SHOWN}\n"),
        (console.say, f"{SHOWN}\n"),
        (lambda text: console.fail(KernelpackError(text)), f"error: {SHOWN}\n"),
    ],
)
def test_texts_of_others(capsys, printed, expected):
    """What would clear a terminal or forge a line is shown as escapes."""
    printed(HOSTILE)
    assert "".join(capsys.readouterr()) == expected


def test_lines_of_others(capsys):
    """A line break in somebody's text begins no line that looks like ours, nor a hint."""
    text = "a\nfake.kpk: sound\nhint: x"
    console.say(text)
    console.show(text)
    console.fail(KernelpackError(text, where=text, hint="mend\nerror: y"))
    shown = "a\n  fake.kpk: sound\n  hint: x\n"
    lines = f"error: {shown[:-1]}: {shown}hint: mend\n  error: y\n"
    assert capsys.readouterr() == (shown, shown + lines)


def test_empty_table(capsys):
    """No rows leave the header."""
    console.print_table(("name", "bytes"), [])
    assert capsys.readouterr().out == "name  bytes\n"


def test_facts(capsys):
    """Names aligned."""
    console.print_facts({"a": 1, "long": "x"})
    assert capsys.readouterr().out == "a     1\nlong  x\n"


def test_fail(capsys):
    """`error: where: what`, the hint last, all on stderr."""
    console.fail(KernelpackError("is wrong", where="x.yaml:1:2", hint="do better"))
    assert capsys.readouterr() == ("", "error: x.yaml:1:2: is wrong\nhint: do better\n")


def test_json(capsys):
    """Words of any language stay readable."""
    console.print_json({"a": "…"})
    assert capsys.readouterr().out == '{\n  "a": "…"\n}\n'


def test_json_of_others(capsys):
    """What would move a terminal's cursor is in JSON's escapes, and reads back."""
    console.print_json(HOSTILE)
    out = capsys.readouterr().out
    assert out == r'"a\u001b[2Jb\rc\u007f\u009b\u202ed"' + "\n"
    assert json.loads(out) == HOSTILE
