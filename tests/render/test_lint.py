"""Which declarations would carry the folder they were built in."""

import pytest

from kernelpack.errors import RenderError
from kernelpack.render.lint import check


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
