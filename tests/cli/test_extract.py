"""`kernelpack extract`."""

import json
from pathlib import Path

from tests.cli.conftest import BF16


def test_files(kernelpack, bundle, tmp_path):
    """A cubin and a description an entry; their paths are the output."""
    said = kernelpack("extract", bundle, "-o", tmp_path / "out")
    paths = [Path(line) for line in said.out.splitlines()]
    assert sorted(paths) == sorted((tmp_path / "out").iterdir())
    assert [path.suffix for path in paths] == [".cubin", ".json"] * 2
    assert said.err == f"wrote 4 files to {tmp_path}/out\n"


def test_keep(kernelpack, bundle, tmp_path):
    """`-k` chooses among the entries."""
    kernelpack("extract", bundle, "-o", tmp_path / "out", "-k", "out=bf16")
    (cubin,) = (tmp_path / "out").glob("*.cubin")
    assert cubin.read_text() == f"cubin of {BF16}"


def test_folder_is_needed(kernelpack, bundle):
    """Nothing is written where no folder was named."""
    assert kernelpack("extract", bundle).code == 2


def test_keep_nothing(kernelpack, bundle, tmp_path):
    """A choice of nothing writes nothing."""
    said = kernelpack("extract", bundle, "-o", tmp_path / "out", "-k", "nonsense")
    assert (said.code, (tmp_path / "out").exists()) == (1, False)


def test_json(kernelpack, bundle, tmp_path):
    """The same paths for programs, and no talk."""
    said = kernelpack("extract", bundle, "-o", tmp_path / "out", "--json")
    told = json.loads(said.out)
    assert (told["bundle"], said.err) == (str(bundle), "")
    assert sorted(map(Path, told["files"])) == sorted((tmp_path / "out").iterdir())
