"""The headers compile wherever C++17 does, without a warning."""

import subprocess

import pytest

from tests.cpp.compiler import INCLUDE, compile_program
from tests.docs.pages import blocks
from tests.host import need_compiler

LOADER = "#include <kernelpack/loader.hpp>\n"
OTHER = "int other() { return kernelpack::open_bundle({}) ? 1 : 0; }\n"
MAIN = "int main() { return kernelpack::load({}) ? 1 : 0; }\n"
HEADERS = sorted(path.name for path in (INCLUDE / "kernelpack" / "detail").iterdir())


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(
    "flags",
    [
        ["-O2", "-Wpedantic", "-Wshadow"],
        ["-std=c++20", "-fsyntax-only"],
        ["-fno-exceptions", "-fno-rtti", "-fsyntax-only"],
    ],
    ids=" ".join,
)
def test_compilers(tmp_path, compiler, flags):
    """g++ and clang++, newer standards, no exceptions."""
    source = tmp_path / "main.cpp"
    source.write_text(LOADER + MAIN)
    compile_program(source, tmp_path / "main", *flags, compiler=compiler)


def test_two_sources_of_one_program(tmp_path):
    """Everything is inline: two sources that include the loader link."""
    main, other = tmp_path / "main.cpp", tmp_path / "other.cpp"
    main.write_text(LOADER + LOADER + MAIN)
    other.write_text(LOADER + OTHER)
    compile_program(main, tmp_path / "main", compiler="clang++", libraries=[str(other)])


def test_macros_of_others(tmp_path):
    """Names that other headers define as macros are not met."""
    source = tmp_path / "main.cpp"
    taken = ("major", "minor", "ALIGN", "MIN", "MAX", "NONE", "ERROR")
    defines = "".join(f"#define {name} ?\n" for name in taken)
    source.write_text(
        defines + LOADER + "#ifdef KERNELPACK_TRY\n#error left behind\n#endif\n" + MAIN
    )
    compile_program(source, tmp_path / "main", "-fsyntax-only")


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_stands_alone(tmp_path, header):
    """Each header includes what it uses."""
    source = tmp_path / "main.cpp"
    source.write_text(f"#include <kernelpack/detail/{header}>\nint main() {{}}\n")
    compile_program(source, tmp_path / "main", "-fsyntax-only", compiler="clang++")


@pytest.mark.parametrize(("language", "compiler"), [("cpp", "g++"), ("c", "gcc")])
def test_the_guide(tmp_path, language, compiler):
    """The guide's blocks of a language compile as one program."""
    need_compiler(compiler)
    text = "\n".join(blocks("docs/guides/cpp.md", language))
    assert text
    source = tmp_path / f"guide.{language}"
    source.write_text(text)
    command = [compiler, "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-fsyntax-only", source]
    subprocess.run(command, check=True)
