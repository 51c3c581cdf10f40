"""The compiled extension, built once a session, and the two ways of holding a call ready.

Rooms whose tests need them import both in their conftest.
"""

import subprocess
import sysconfig
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from kernelpack.runtime.bound import bind_by_ctypes
from tests.host import need

FOLDER = Path(__file__).parents[1] / "extension"
STRICT = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror")


@pytest.fixture(scope="session")
def extension(tmp_path_factory):
    """The module `kernelpack_launch`, compiled without a warning; found by nobody else."""
    need("gcc")
    library = tmp_path_factory.mktemp("extension") / "kernelpack_launch.abi3.so"
    headers = f"-I{sysconfig.get_path('include')}"
    sources = sorted(FOLDER.glob("*.c"))
    subprocess.run(
        ["gcc", *STRICT, headers, "-shared", "-fPIC", *sources, "-o", library], check=True
    )
    loader = ExtensionFileLoader("kernelpack_launch", str(library))
    spec = spec_from_loader("kernelpack_launch", loader)
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture(params=["ctypes", "extension"])
def bind(request):
    """Each way of holding a call ready."""
    if request.param == "ctypes":
        return bind_by_ctypes
    return request.getfixturevalue("extension").bind
