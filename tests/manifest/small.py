"""The small manifest, as it is and with one thing changed."""

from pathlib import Path

import pytest

from kernelpack.errors import ManifestError
from kernelpack.manifest.model import Manifest
from kernelpack.manifest.reader import parse
from kernelpack.manifest.schema import load_document

PATH = Path(__file__).with_name("small.yaml")
TEXT = PATH.read_text()


def changed(old: str, new: str) -> str:
    """The text with `old` replaced once by `new`."""
    assert old in TEXT
    return TEXT.replace(old, new, 1)


def small(old: str = "", new: str = "") -> Manifest:
    """The manifest with `old` replaced once by `new`."""
    return load_document(parse(changed(old, new), "small.yaml"))


def mistake(old: str, new: str) -> ManifestError:
    """The error of that manifest."""
    with pytest.raises(ManifestError) as error:
        small(old, new)
    return error.value
