"""The command line, run inside the test: words in, exit code and both streams out."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from kernelpack.build.pipeline import build
from kernelpack.cli import settings
from kernelpack.cli.main import main
from tests.fakes.bundles import write_bundle
from tests.fakes.project import Project, make_project
from tests.fakes.variants import variant


@dataclass(frozen=True)
class Said:
    """What a command line came to."""

    code: int
    out: str
    err: str


Kernelpack = Callable[..., Said]


@pytest.fixture
def kernelpack(capsys: pytest.CaptureFixture[str]) -> Kernelpack:
    """Run `kernelpack WORD ...`."""

    def run(*words: object) -> Said:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        said = capsys.readouterr()
        return Said(code=left.value.code, out=said.out, err=said.err)

    return run


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable of the machine, and no cache outside the test."""
    for name in settings.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KERNELPACK_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A small project as if it had come with kernelpack, and compilers that compile nothing."""
    made = make_project(tmp_path / "project")
    steps = partial(build, steps=made.steps())
    monkeypatch.setattr(import_module("kernelpack.cli.build"), "build", steps)
    monkeypatch.setattr(settings, "sources", lambda: made.root)
    monkeypatch.setattr(settings, "manifests", lambda: (made.manifest,))
    return made


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle of two entries whose machine code is text."""
    return write_bundle(tmp_path / "x.kpk", [variant(), variant(out="fp32")])


BF16 = "lora_shrink_qkv[arch=sm_90a,dtype=bf16,out=bf16,tile=64]"
FP32 = "lora_shrink_qkv[arch=sm_90a,dtype=bf16,out=fp32,tile=64]"
