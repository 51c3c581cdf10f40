"""The wheels of a toolchain: what belongs together, and what is refused."""

import hashlib
import os
from pathlib import Path

import pytest

from kernelpack.errors import ToolchainError
from kernelpack.toolchain import recorded
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.toolchain import Toolchain
from tests.toolchain.site import FILES, HEADER, RELEASED, install, install_wheel

INSTALL = r'pip install --force-reinstall "cuda-toolkit\[nvcc,nvrtc,cccl\]==13\.4\.3"'


@pytest.fixture(autouse=True)
def _memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is hashed here is remembered here."""
    monkeypatch.setattr(recorded, "memory", lambda: tmp_path / "memory")


def found(site: Path, front_end: str = "nvrtc") -> Toolchain:
    return find("cuda-13.4", front_end, site=[str(site)])


def test_parts_of_one_release_are_accepted(tmp_path: Path) -> None:
    """Wheels of one release belong together though their numbers differ, CCCL's most of all."""
    install(tmp_path, RELEASED)
    assert found(tmp_path).versions == RELEASED


def test_parts_that_meet_the_pins_are_accepted(tmp_path: Path) -> None:
    """Where the meta wheel is installed, its pins are met by longer versions too."""
    install(tmp_path, RELEASED)
    install_wheel(tmp_path, "cuda-toolkit", "13.4.1", {}, requires=RELEASED)
    assert found(tmp_path).release == "13.4"


def test_parts_of_two_releases_are_refused(tmp_path: Path) -> None:
    """nvcc 13.3 beside runtime headers 13.0: both versions, the file that has them, the repair."""
    install(
        tmp_path,
        dict.fromkeys(RELEASED, "13.3.33") | {"nvidia-cuda-runtime": "13.0.96"},
    )
    file = r"nvidia_cuda_runtime-13\.0\.96\.dist-info/METADATA"
    what = r"nvidia-cuda-runtime 13\.0\.96 and nvidia-cuda-nvcc 13\.3\.33"
    with pytest.raises(ToolchainError, match=rf"{file}: {what} .*\nhint: {INSTALL}"):
        found(tmp_path)


def test_another_release_is_refused(tmp_path: Path) -> None:
    """A whole toolkit of another release is not the one asked for."""
    install(tmp_path, dict.fromkeys(RELEASED, "13.5.37"))
    with pytest.raises(ToolchainError, match=r"nvidia-cuda-nvcc 13\.5\.37 is not of CUDA 13\.4"):
        found(tmp_path)


def test_a_part_that_breaks_a_pin_is_refused(tmp_path: Path) -> None:
    """The meta wheel says which numbers belong together, also where they float."""
    install(tmp_path, RELEASED)
    pins = RELEASED | {"nvidia-cuda-cccl": "13.3.5"}
    install_wheel(tmp_path, "cuda-toolkit", "13.4.1", {}, requires=pins)
    what = (
        r"nvidia-cuda-cccl 13\.3\.4 does not belong to cuda-toolkit 13\.4\.1, which pins 13\.3\.5"
    )
    with pytest.raises(ToolchainError, match=what):
        found(tmp_path)


def test_a_meta_wheel_of_another_release_pins_nothing(tmp_path: Path) -> None:
    """Another package may want another release's meta wheel; only whole parts count."""
    install(tmp_path, RELEASED)
    pins = dict.fromkeys(RELEASED, "13.0.2")
    install_wheel(tmp_path, "cuda-toolkit", "13.0.2", {}, requires=pins)
    assert found(tmp_path).versions == RELEASED


def test_headers_of_another_release_are_refused(tmp_path: Path) -> None:
    """A wheel's number does not help where another's headers lie over its own."""
    other = {HEADER: "#define CUDART_VERSION  13000\n"}
    install(tmp_path, RELEASED, files={"nvidia-cuda-runtime": other})
    what = r"the header is of CUDA 13\.0, its wheel nvidia-cuda-runtime is 13\.4\.49"
    with pytest.raises(ToolchainError, match=rf"cuda_runtime_api\.h: {what}"):
        found(tmp_path)


@pytest.mark.parametrize("name", RELEASED)
def test_a_missing_wheel_is_named(tmp_path: Path, name: str) -> None:
    """The error names the wheel that is missing and how to get it."""
    install(tmp_path, {part: RELEASED[part] for part in RELEASED if part != name})
    with pytest.raises(ToolchainError, match=rf"{name} is not installed\nhint: {INSTALL}"):
        found(tmp_path)


def test_parts_in_two_folders_are_refused(tmp_path: Path) -> None:
    """A virtual environment over another may give half a toolchain from each."""
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    install(upper, {"nvidia-cuda-nvcc": "13.4.59"})
    install(lower, RELEASED)
    with pytest.raises(ToolchainError, match=f"nvidia-nvvm is in {lower}, .*nvcc in {upper}"):
        find("cuda-13.4", site=[str(upper), str(lower)])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A wheel that lost a file is damaged."""
    install(tmp_path, RELEASED)
    (tmp_path / "nvidia/cu13/bin/ptxas").unlink()
    with pytest.raises(ToolchainError, match=r"bin/ptxas: the file is missing: nvidia-cuda-nvcc"):
        found(tmp_path)


def test_an_overwritten_file_is_named(tmp_path: Path) -> None:
    """A file of another size than recorded is not the wheel's."""
    install(tmp_path, RELEASED)
    (tmp_path / "nvidia/cu13/nvvm/bin/cicc").write_text("another compiler")
    with pytest.raises(ToolchainError, match=r"bin/cicc: the file has 16 bytes, not 4"):
        found(tmp_path)


@pytest.mark.parametrize("remembered", [True, False])
def test_a_file_of_other_bytes(tmp_path, remembered):
    """Other bytes of the same length are found, also where the file was hashed before."""
    install(tmp_path, RELEASED)
    if remembered:
        assert found(tmp_path)
    (tmp_path / "nvidia/cu13/nvvm/bin/cicc").write_text("cicd")
    with pytest.raises(ToolchainError, match="cicc: the file is not the one that was installed"):
        found(tmp_path)


def test_files_are_hashed_once(tmp_path, monkeypatch):
    """What was hashed is remembered until the file changes; a damaged memory is not used."""
    install(tmp_path, RELEASED)
    found(tmp_path)
    hashed = []
    digest = hashlib.file_digest
    monkeypatch.setattr(
        hashlib, "file_digest", lambda file, name: hashed.append(file.name) or digest(file, name)
    )
    found(tmp_path)
    assert hashed == []
    cicc = tmp_path / "nvidia/cu13/nvvm/bin/cicc"
    os.utime(cicc, (0, 0))
    found(tmp_path)
    assert hashed == [str(cicc)]
    for kept in (tmp_path / "memory").iterdir():
        kept.write_text("[1")
    found(tmp_path)
    assert len(hashed) > len(RELEASED)


def test_nowhere_to_remember(tmp_path, monkeypatch):
    """Without a folder to write to, all files are hashed each time."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(recorded, "memory", lambda: tmp_path / "file" / "memory")
    install(tmp_path, RELEASED)
    assert found(tmp_path)


def test_a_header_that_does_not_say_its_release_is_named(tmp_path: Path) -> None:
    """A runtime header without its version is not one."""
    install(tmp_path, RELEASED, files={"nvidia-cuda-runtime": {HEADER: "// nothing"}})
    with pytest.raises(ToolchainError, match="does not define CUDART_VERSION"):
        found(tmp_path)


def test_the_digest_does_not_know_the_folder(tmp_path: Path) -> None:
    """The same wheels in two places are one toolchain."""
    install(tmp_path / "one", RELEASED)
    install(tmp_path / "two", RELEASED)
    assert found(tmp_path / "one").digest == found(tmp_path / "two").digest


@pytest.mark.parametrize("name", FILES)
def test_every_part_is_in_the_digest(tmp_path: Path, name: str) -> None:
    """Another content of any part is another toolchain, at the same versions."""
    install(tmp_path / "one", RELEASED)
    changed = {path: f"{text}//" for path, text in FILES[name].items()}
    install(tmp_path / "two", RELEASED, files={name: changed})
    assert found(tmp_path / "one").digest != found(tmp_path / "two").digest


@pytest.mark.parametrize(
    ("name", "same"), [("nvidia-cuda-nvcc", False), ("nvidia-cuda-cccl", True)]
)
def test_the_assembler_has_a_digest_of_its_own(tmp_path: Path, name: str, same: bool) -> None:
    """Other headers leave the assembler what it was."""
    install(tmp_path / "one", RELEASED)
    changed = {path: f"{text}//" for path, text in FILES[name].items()}
    install(tmp_path / "two", RELEASED, files={name: changed})
    assert (found(tmp_path / "one").ptxas_digest == found(tmp_path / "two").ptxas_digest) == same
