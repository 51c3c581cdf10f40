"""Which declarations would carry the folder they were built in."""

import pytest

from kernelpack.errors import RenderError
from kernelpack.render.lint import check, check_pasted


@pytest.mark.parametrize(
    ("text", "variable", "line"),
    [
        ("static __device__ int x;", "x", 1),
        ("__device__ static int x = 3;", "x", 1),
        ("static __constant__ float table[4] = {1, 2, 3, 4};", "table", 1),
        ("static __constant__ float table[2][2];", "table", 1),
        ("static __managed__ int x;", "x", 1),
        ("static __device__ __align__(16) int4 x;", "x", 1),
        ("alignas(64) static __device__ int x{3};", "x", 1),
        ("int y;\nstatic\n__device__ int x;", "x", 3),
        ("namespace {\n__device__ int x;\n}", "x", 2),
        ("namespace kp {\nnamespace {\n__constant__ int x = f(3);\n}}", "x", 3),
        ("namespace { struct S { int a; };\n__device__ S x; }", "x", 2),
    ],
)
def test_internal_linkage(text, variable, line):
    """A device variable that is `static` or in a nameless namespace is refused by its name."""
    with pytest.raises(RenderError, match=f"device variable `{variable}`") as error:
        check(text, "t.cuh")
    assert error.value.where == f"t.cuh:{line}"


@pytest.mark.parametrize(
    "text",
    [
        "__device__ int x;",
        "static __device__ __forceinline__ int f(int x) { return x; }",
        "static __device__ int f(int x);",
        "namespace kp { __device__ int x; }",
        "namespace { constexpr int N = 3; }",
        "namespace { __device__ int f(); }",
        "namespace { int a; }\n__device__ int x;",
        "struct S { static constexpr int N = 3; __device__ int f() const; };",
        "static constexpr int N = 3;",
        "// static __device__ int x;",
        "/* static __device__ int x; */",
        'const char* s = "static __device__ int x;";',
        "__global__ void k() { __shared__ int x[4]; }",
    ],
)
def test_other_declarations(text):
    """Functions, constants, and what only looks like such a variable are left alone."""
    assert check(text, "t.cuh") is None


PASTES = "#define P(a, b) a##b\n"


@pytest.mark.parametrize(
    ("code", "macro"),
    [
        ("P(__TI, ME__)", "__TIME__"),
        ("P(__DA, TE__)", "__DATE__"),
        ("P(__, P(TIMESTAMP, __))", "__TIMESTAMP__"),
        ("P(_, P(_, P(TIME, __)))", "__TIME__"),
    ],
)
def test_a_clock_that_is_pasted_together(code, macro):
    """Pieces of a clock's macro are refused where `##` joins words, in whatever file they are."""
    with pytest.raises(RenderError, match=f"`##` may make `{macro}`") as error:
        check_pasted([(f"int x = {code};", "t.cu.j2"), ("int y;\n" + PASTES, "kp/p.cuh")])
    assert error.value.where == "kp/p.cuh:2"


@pytest.mark.parametrize(
    "text",
    [
        "int x = P(__TI, MER__);",
        "int x = P(TI, ME);",
        "int TIME = P(x, __restrict__);",
        'const char* s = "__TI ME__";',
    ],
)
def test_other_pastes(text):
    """Words that do not make the whole name may be pasted."""
    assert check_pasted([(PASTES + text, "t.cu.j2")]) is None


def test_pieces_without_a_paste():
    """Nothing joins words where there is no `##`, in code or only in a comment."""
    assert check_pasted([("int x = P(__TI, ME__); // a##b", "t.cu.j2")]) is None
