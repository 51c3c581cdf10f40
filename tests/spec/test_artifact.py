"""Digests: the names of artifacts."""

from dataclasses import replace

import pytest

from kernelpack.spec.artifact import Header, Ptx, Source, digest

SOURCE = Source(
    variant_id="v", entry="e", name="x.cu.j2", text="a", headers=(Header(path="kp/h", text="h"),)
)


def test_digest():
    """A digest is SHA-256 in hex, of text as UTF-8."""
    assert digest("") == digest(b"") == Ptx(text="").digest
    assert digest("").startswith("e3b0c44298fc1c14")


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "b"},
        {"headers": ()},
        {"headers": (Header(path="kp/h", text="i"),)},
        {"headers": (Header(path="kp/i", text="h"),)},
    ],
)
def test_a_source_is_its_text_and_its_headers(changes):
    """Another text, header or path of one is another source."""
    assert SOURCE.digest != replace(SOURCE, **changes).digest


def test_names_do_not_count():
    """Which variant it is for is not part of what a source says."""
    assert SOURCE.digest == replace(SOURCE, variant_id="w", entry="f").digest
