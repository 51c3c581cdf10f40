"""A small bundle, written once, and a copy of it for tests that change it."""

from itertools import product
from pathlib import Path
from shutil import copy

import pytest

from kernelpack.bundle.entry import Entry
from tests.fakes.bundles import entry, write_bundle
from tests.fakes.variants import variant

AXES = tuple(product(("sm_90a", "sm_100a"), ("bf16", "fp16"), (16, 64)))


def make_entries() -> tuple[Entry, ...]:
    """Entries of two targets; the machine code is text."""
    return tuple(entry(variant(arch=a, dtype=d, tile=t)) for a, d, t in AXES)


@pytest.fixture(scope="session")
def entries() -> tuple[Entry, ...]:
    return make_entries()


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound bundle that no test changes."""
    return write_bundle(tmp_path_factory.mktemp("bundle") / "sound.kpk", make_entries())


@pytest.fixture
def bundle_path(sound: Path, tmp_path: Path) -> Path:
    """A copy that the test may change."""
    return Path(copy(sound, tmp_path / "x.kpk"))
