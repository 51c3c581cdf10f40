"""A project that finds the loader with CMake, and the example server it builds."""

import subprocess

from kernelpack.cli.config import PACKAGE
from tests.cpp.compiler import ROOT, compile_program
from tests.host import need, need_compiler

EXAMPLE = ROOT / "examples" / "cpp_server"
PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(mine C CXX)
find_package(kernelpack REQUIRED)
add_executable(mine mine.c)
target_link_libraries(mine PRIVATE kernelpack::c)
"""
C = "#include <kernelpack/kernelpack.h>\nint main(void) { return kp_abi() != KP_ABI; }\n"


def build(source, folder):
    """Configure and build a CMake project."""
    need("cmake", "make")
    need_compiler("c++")
    subprocess.run(
        ["cmake", "-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={PACKAGE / 'cmake'}"],
        check=True,
        capture_output=True,
        timeout=120,
    )
    subprocess.run(["cmake", "--build", folder], check=True, capture_output=True, timeout=300)


def test_the_example_server(tmp_path):
    """The example builds as its README says, and says what it needs where there is no driver."""
    build(EXAMPLE, tmp_path)
    done = subprocess.run([tmp_path / "server", "/no/such.kpk"], capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"/no/such.kpk: cannot be read: No such file")


def test_the_example_has_no_warnings(tmp_path):
    """The example compiles as strictly as the loader."""
    compile_program(EXAMPLE / "server.cpp", tmp_path / "server", "-fsyntax-only")


def test_the_c_interface(tmp_path):
    """A project in C links kernelpack::c."""
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "mine.c").write_text(C)
    build(tmp_path, tmp_path / "build")
    subprocess.run([tmp_path / "build" / "mine"], check=True)
