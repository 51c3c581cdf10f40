"""`-k` chooses variants as pytest chooses tests."""

import pytest

from kernelpack.build.keep import parse_keep
from kernelpack.errors import KernelpackError

ID = "lora_shrink_qkv[arch=sm_90a,dtype=bf16,regime=decode]"


@pytest.mark.parametrize(
    ("text", "kept"),
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
def test_keep(text, kept):
    """Words are parts of the id; `not` binds tighter than `and`, `and` tighter than `or`."""
    assert parse_keep(text)(ID) is kept


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
    """A choice that does not parse is told with the word where it stops making sense."""
    with pytest.raises(KernelpackError, match="does not parse") as caught:
        parse_keep(text)
    assert f"`{at}`" in caught.value.what
    assert "not fp16" in caught.value.hint
