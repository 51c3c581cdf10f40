"""`-k` chooses variants as pytest chooses tests."""

from dataclasses import dataclass

import pytest

from kernelpack.errors import KernelpackError
from kernelpack.spec.filter import MAX_DEPTH, filtered, parse_filter

ID = "lora_shrink_qkv[arch=sm_90a,dtype=bf16,regime=decode]"


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("  ", True),
        ("lora", True),
        ("LORA", True),
        ("regime=decode", True),
        ("[arch=sm_90a,dtype=bf16", True),
        ("prefill", False),
        ("not prefill", True),
        ("not not lora", True),
        ("lora and prefill", False),
        ("lora or prefill", True),
        ("prefill and lora or bf16", True),
        ("prefill and (lora or bf16)", False),
        ("not (prefill or fp16)", True),
        ("not prefill and not bf16", False),
        ("android", False),
    ],
)
def test_filter(text, matches):
    """Words are parts of the id; `not` binds tighter than `and`, `and` tighter than `or`."""
    assert parse_filter(text)(ID) is matches


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("and", "and"),
        ("lora and", "the end"),
        ("lora bf16", "bf16"),
        ("(lora", "the end"),
        ("(lora bf16)", "bf16"),
        ("lora)", ")"),
        ("()", ")"),
        ("not", "the end"),
    ],
)
def test_mistakes(text, at):
    """The error of a choice that does not parse names the word where it stops making sense."""
    with pytest.raises(KernelpackError, match="does not parse") as caught:
        parse_filter(text)
    assert f"`{at}`" in caught.value.what
    assert "not fp16" in caught.value.hint


@pytest.mark.parametrize("text", ["(" * 5000, "not " * 5000 + "lora"])
def test_too_deep(text):
    """A choice that is nested beyond reason is refused, and does not end in a RecursionError."""
    with pytest.raises(KernelpackError, match=f"nested deeper than {MAX_DEPTH}"):
        parse_filter(text)


@pytest.mark.parametrize("word", ["or", "and"])
def test_long(word):
    """A choice may be as long as a command line takes."""
    assert parse_filter(f" {word} ".join(["lora"] * 5000))(ID)


@dataclass(frozen=True)
class Item:
    id: str


ITEMS = (Item(ID), Item(ID.replace("bf16", "fp16")))


def test_filtered():
    """Of several items those are kept whose id matches; all where nothing is asked."""
    assert filtered(ITEMS, "fp16") == [ITEMS[1]]
    assert (filtered(ITEMS, ""), filtered((), "x")) == (list(ITEMS), [])


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("bf61", "no id holds `bf61`: none of 2 variants is kept", "did you mean `bf16`?"),
        ("dtyp=bf16", "no id holds `dtyp=bf16`", "did you mean `dtype=bf16`?"),
        ("lora and lroa_shrink_qkv", "no id holds `lroa_shrink", "did you mean `lora_shrink_qkv`?"),
        ("qqq", "no id holds `qqq`", ""),
        ("bf16 and fp16", "none of 2 variants is kept", ""),
    ],
)
def test_nothing_kept(text, what, hint):
    """A choice that keeps nothing names the word that no id has, and what is near."""
    with pytest.raises(KernelpackError) as caught:
        filtered(ITEMS, text)
    assert caught.value.what.startswith(what)
    assert caught.value.hint == f"{hint} ids are like {ID}".strip()
