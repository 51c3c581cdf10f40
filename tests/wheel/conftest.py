"""A bundle of two architectures, with its PTX beside it."""

from pathlib import Path

import pytest

from kernelpack.bundle.reader import Bundle, open_bundle, twin_of
from kernelpack.bundle.writer import write_ptx
from kernelpack.spec.artifact import Ptx
from tests.bundle.conftest import make_entries
from tests.fakes.bundles import provenance, write_bundle


def make_bundle(folder: Path, name: str = "x.kpk") -> Path:
    """Both files; PTX is text."""
    entries = make_entries()
    path = write_bundle(folder / name, entries)
    texts = [Ptx(text=f"ptx of {entry.variant.id}") for entry in entries]
    write_ptx(texts, twin_of(path), provenance())
    return path


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def bundle(path: Path) -> Bundle:
    return open_bundle(path)
