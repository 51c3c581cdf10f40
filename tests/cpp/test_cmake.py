"""A project that finds the loader with CMake, and the example server it builds."""

import subprocess

from kernelpack.cache.key import Key
from kernelpack.cli.config import PACKAGE
from tests.cpp.compiler import CODE, INCLUDE, compile_program, version
from tests.host import need, need_compiler
from tests.kept import ROOT, STORE, folder_digest

EXAMPLE = ROOT / "examples" / "cpp_server"
PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(mine C CXX)
find_package(kernelpack REQUIRED)
add_executable(mine mine.c)
target_link_libraries(mine PRIVATE kernelpack::c)
"""
C = "#include <kernelpack/kernelpack.h>\nint main(void) { return kp_abi() != KP_ABI; }\n"


def built(source, folder, name):
    """The program of a CMake project; it is kept between runs."""
    need("cmake", "make")
    need_compiler("c++")
    parts = (
        ("programs", " ".join(map(version, ("cmake", "c++", "cc")))),
        ("project", folder_digest(source, (*CODE, ".txt"))),
        ("package", folder_digest(PACKAGE / "cmake", (".cmake",))),
        ("headers", folder_digest(INCLUDE, CODE)),
    )
    folder.mkdir(exist_ok=True)
    program = folder / name
    content = STORE.make_once(Key(parts=parts).digest, lambda: _build(source, folder, name))
    program.write_bytes(content)
    program.chmod(0o755)
    return program


def _build(source, folder, name):
    """Configure and build."""
    subprocess.run(
        ["cmake", "-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={PACKAGE / 'cmake'}"],
        check=True,
        capture_output=True,
        timeout=120,
    )
    subprocess.run(["cmake", "--build", folder], check=True, capture_output=True, timeout=300)
    return (folder / name).read_bytes()


def test_the_example_server(tmp_path):
    """The example builds as its README says, and says what it needs where there is no driver."""
    server = built(EXAMPLE, tmp_path, "server")
    done = subprocess.run([server, "/no/such.kpk"], capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"/no/such.kpk: cannot be read: No such file")


def test_the_example_has_no_warnings(tmp_path):
    """The example compiles as strictly as the loader."""
    compile_program(EXAMPLE / "server.cpp", tmp_path / "server", "-fsyntax-only")


def test_the_c_interface(tmp_path):
    """A project in C links kernelpack::c."""
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "mine.c").write_text(C)
    subprocess.run([built(tmp_path, tmp_path / "build", "mine")], check=True)
