"""The stand-in and a host program, compiled once."""

import subprocess
from pathlib import Path

import pytest

from kernelpack.emulate import standin
from kernelpack.toolchain.locate import find
from tests.emulate.images import SCALE
from tests.host import need
from tests.kept import FOLDER


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The folder of the stand-in's libraries, which is kept between runs as users' are."""
    need("g++")
    return standin.build(FOLDER, find().include_dirs)


@pytest.fixture(scope="session")
def host(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host program of host.cpp."""
    made = tmp_path_factory.mktemp("host") / "host"
    need("g++")
    includes = [f"-I{path}" for path in find().include_dirs]
    source = Path(__file__).parent / "host.cpp"
    command = ["g++", "-std=c++17", *includes, source, f"-L{libraries}", "-lcudart", "-lcuda"]
    subprocess.run([*command, "-o", made], check=True)
    return made


@pytest.fixture
def ptx(tmp_path: Path) -> Path:
    """A file of PTX: the kernel `scale`."""
    path = tmp_path / "scale.ptx"
    path.write_text(SCALE)
    return path
