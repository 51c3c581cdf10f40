"""A kernel of one's own is a folder of three files that are called as it is."""

from pathlib import Path

import pytest

from kernelpack.errors import OracleError
from kernelpack.kernels.folder import folders, of
from kernelpack.kernels.registry import KERNELS, known
from tests.kernels.own import own


def stems(*paths: Path) -> list[str]:
    return [folder.stem for folder in folders(paths)]


def test_itself(tmp_path):
    """The folder of a kernel is one."""
    assert stems(own(tmp_path)) == ["twice"]


def test_from_within(tmp_path, monkeypatch):
    """`.` is the folder that one is in."""
    monkeypatch.chdir(own(tmp_path))
    assert stems(Path()) == ["twice"]


def test_a_folder_of_kernels(tmp_path):
    """A folder of several has each of them."""
    own(tmp_path)
    own(tmp_path, stem="again")
    assert stems(tmp_path) == ["again", "twice"]


def test_named_twice(tmp_path):
    """One that is named twice is one."""
    assert stems(own(tmp_path), tmp_path) == ["twice"]


def test_two_of_one_stem(tmp_path):
    """Two folders of one name are both said."""
    one, two = own(tmp_path / "one"), own(tmp_path / "two")
    with pytest.raises(OracleError, match=f"{two}: {one} has a kernel of this name too"):
        folders([one, two])


def test_no_kernel(tmp_path):
    """The error names the manifest nearest to its name."""
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice" / "twise.yaml").touch()
    with pytest.raises(OracleError, match="holds no kernel") as caught:
        folders([tmp_path / "twice"])
    assert caught.value.hint.startswith("did you mean `twise.yaml`? a kernel's manifest is called")


def test_no_folder(tmp_path):
    """What is not there is no folder."""
    with pytest.raises(OracleError, match="is not a folder"):
        folders([tmp_path / "absent"])


def test_of_a_manifest(tmp_path):
    """A manifest called as its folder lies in a kernel's; others do not."""
    folder = own(tmp_path)
    assert of(folder / "twice.yaml").path == folder
    assert of(folder / "other.yaml") is None


def test_named_come_before_installed(tmp_path):
    """A folder called as one of kernelpack's own kernels takes its place; the others stay."""
    found = known((own(tmp_path, stem="lora_shrink_qkv"),))
    assert found["lora_shrink_qkv"].origin
    assert set(found) == set(KERNELS)


def test_nothing_named():
    """Without folders there are the installed ones."""
    assert known(()) is KERNELS


def test_no_oracle(tmp_path):
    """A folder without an oracle says what it would be called, and what is there."""
    folder = own(tmp_path, None)
    (folder / "oracle.py").touch()
    with pytest.raises(OracleError, match="there is no oracle") as caught:
        known((folder,))["twice"]
    assert caught.value.hint == "an oracle is called twice.py; the folder has oracle.py"
