"""`kernelpack new`: a folder whose kernel works as it stands."""

import json
from errno import EACCES
from pathlib import Path

import pytest

from kernelpack.kernels.folder import folders
from tests.kept import FOLDER, ROOT

EXAMPLES = [folder.stem for folder in folders([ROOT / "examples" / "kernels"])]
FILES = ["mine/mine.yaml", "mine/mine.cu.j2", "mine/mine.py"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_three_files(kernelpack):
    """A manifest, a template and an oracle are made, and nothing else."""
    said = kernelpack("new", "mine")
    assert (said.code, said.out.splitlines()) == (0, FILES)
    assert sorted(map(str, Path().rglob("*"))) == sorted(["mine", *FILES])


def test_json(kernelpack):
    """Programs get the same."""
    said = kernelpack("new", "mine", "--json")
    assert json.loads(said.out) == {"kernel": "mine", "files": FILES}


def test_into(kernelpack):
    """It is made in the folder that is named."""
    Path("kernels").mkdir()
    assert kernelpack("new", "mine", "--into", "kernels").code == 0
    assert kernelpack("list", "--kernels", "kernels").out.startswith("mine[arch=sm_100a,")


@pytest.mark.parametrize("like", EXAMPLES)
def test_like(kernelpack, like):
    """Every example can be begun as, under another name everywhere."""
    assert kernelpack("new", "mine", "--like", like).code == 0
    assert kernelpack("list", "mine").out.startswith("mine[arch=sm_100a,")
    assert not [path for path in Path("mine").iterdir() if like in path.read_text().split()]


def test_help_names_every_example(kernelpack):
    """What `--like` takes is in its help."""
    said = " ".join(kernelpack("new", "--help").out.split())
    assert all(f"{name}" in said for name in EXAMPLES)


def test_the_longest_name(kernelpack):
    """What is made is what other verbs take."""
    name = "a" * 64
    assert kernelpack("new", name).code == 0
    assert kernelpack("list", name).code == 0


def test_a_folder_that_is_not_ours(kernelpack, monkeypatch):
    """The kernel is named, and not what was to become of it."""

    def refused(**_):
        raise PermissionError(EACCES, "Permission denied", ".mine-x")

    monkeypatch.setattr("kernelpack.cli.new.mkdtemp", refused)
    said = kernelpack("new", "mine")
    assert said.code == 1
    assert "error: mine: cannot be made: Permission denied" in said.err
    assert "--into" in said.err


@pytest.mark.parametrize(
    "name", ["Mine", "2mine", "my-kernel", "a/b", "", "lambda", "..", "ä", "a" * 65]
)
def test_no_name(kernelpack, name):
    """A name that a kernel, a file or C cannot have is refused."""
    said = kernelpack("new", name)
    assert said.code == 1
    assert f"`{name}` is not a valid kernel name" in said.err


def test_an_installed_kernels_name(kernelpack):
    """kernelpack's own names are taken."""
    said = kernelpack("new", "lora_shrink_qkv")
    assert said.code == 1
    assert "is the name of an installed kernel" in said.err


def test_it_is_there(kernelpack):
    """Nothing is written over."""
    Path("mine").mkdir()
    said = kernelpack("new", "mine")
    assert said.code == 1
    assert "mine: is there already" in said.err
    assert list(Path("mine").iterdir()) == []


def test_no_such_example(kernelpack):
    """The error lists the examples."""
    said = kernelpack("new", "mine", "--like", "gemm")
    assert said.code == 1
    assert f"hint: examples: {', '.join(EXAMPLES)}" in said.err
    assert list(Path().iterdir()) == []


@pytest.mark.toolchain
@pytest.mark.slow
def test_it_works_as_it_stands(kernelpack, monkeypatch):
    """The kernel of a new folder builds, verifies and runs."""
    monkeypatch.setenv("KERNELPACK_CACHE_DIR", str(FOLDER))
    assert kernelpack("new", "mine").code == 0
    assert kernelpack("build", "mine", "-o", "mine.kpk").code == 0
    assert kernelpack("verify", "mine.kpk", "--kernels", "mine", "--schedule", "lazy").code == 0
    said = kernelpack("run", "mine", "--bundle", "mine.kpk", "--kernels", "mine")
    assert (said.code, "right" in said.out) == (0, True)
