"""Lines of templates in what compilers write."""

import pytest

from kernelpack.toolchain.lines import SHOWN, Message, messages, paths_of, place_in_ptx, refusal
from tests.toolchain.samples import sample

TOOLKIT = ["/site/cu13/include", "/site/cu13/include/cccl"]
PATHS = paths_of(sample("sm_90a"), ["/build/dir"], TOOLKIT)

PTX = """.visible .entry sample(
)
{
\t.loc\t1 12 5
\tmov.u32 %r1, 0;
\t.loc\t2 30 1, function_name $L__info_string0, inlined_at 1 12 5
\tbogus.u32 %r1;
\tbogus.u32 %r2;
}
\t.file\t1 "sample/kernel.cu.j2"
\t.file\t2 "include/sample/shared.cuh"
"""


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/build/dir/sample/kernel.cu.j2", "sample/kernel.cu.j2"),
        ("sample/part.j2", "sample/part.j2"),
        ("/build/dir/sample/shared.cuh", "include/sample/shared.cuh"),
        ("/build/dir/include/sample/shared.cuh", "include/sample/shared.cuh"),
        ("/site/cu13/include/cuda_bf16.hpp", "toolkit/cuda_bf16.hpp"),
        ("/site/cu13/bin/../include/cuda_bf16.hpp", "toolkit/cuda_bf16.hpp"),
        ("/site/cu13/include/cccl/cuda/std/bit", "toolkit/cuda/std/bit"),
        ("/usr/include/stdc-predef.h", "host/stdc-predef.h"),
    ],
)
def test_a_path_has_one_name_everywhere(path: str, name: str) -> None:
    """Templates by their path, headers of the toolkit and the host without their folder."""
    assert PATHS.name(path) == name


@pytest.mark.parametrize(
    ("line", "where"),
    [
        (5, "sample/kernel.cu.j2:12"),
        (7, "include/sample/shared.cuh:30"),
        (8, "include/sample/shared.cuh:30"),
        (2, "ptx:2"),
    ],
)
def test_a_line_of_ptx_is_placed_in_its_template(line: int, where: str) -> None:
    """The last `.loc` before it says where it came from; before any, the PTX's line counts."""
    assert place_in_ptx(PTX, line) == where


LOG = """sample/part.j2(41): error: identifier "x" is undefined
  x = y;
  ^

/site/cu13/include/cuda_bf16.hpp(7): error #20: identifier "y" is undefined
          detected during instantiation at line 3 of sample/kernel.cu.j2

sample/shared.cuh(2): catastrophic error: cannot open source file "none.cuh"

sample/kernel.cu.j2(9): warning #68-D: integer conversion resulted in a change of sign

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

sample/part.j2:3:10: fatal error: none.h: No such file or directory
    3 | #include <none.h>
compilation terminated.

4 errors detected in the compilation of "sample/kernel.cu.j2".
"""

MESSAGES = [
    Message(where="sample/part.j2:41", what='identifier "x" is undefined\n  x = y;\n  ^'),
    Message(
        where="toolkit/cuda_bf16.hpp:7",
        what='identifier "y" is undefined\n'
        "          detected during instantiation at line 3 of sample/kernel.cu.j2",
    ),
    Message(where="include/sample/shared.cuh:2", what='cannot open source file "none.cuh"'),
    Message(where="sample/kernel.cu.j2:9", what="integer conversion resulted in a change of sign"),
    Message(
        where="sample/part.j2:3",
        what="none.h: No such file or directory\n    3 | #include <none.h>\n"
        "compilation terminated.",
    ),
]


def test_every_message_is_read() -> None:
    """Errors and warnings of both compilers, with the source and the context they show."""
    assert list(messages(LOG, PATHS)) == MESSAGES


def test_a_toolkit_in_the_folder_of_the_build() -> None:
    """Its headers have the same name where a virtual environment lies in the working folder."""
    toolkit = "/build/dir/.venv/include"
    paths = paths_of(sample("sm_90a"), ["/build/dir"], [toolkit])
    assert paths.name(f"{toolkit}/cuda_bf16.hpp") == "toolkit/cuda_bf16.hpp"


@pytest.mark.parametrize(
    ("path", "kind", "count"),
    [
        ("/site/cu13/include/cuda_fp8.hpp", "warning #1444-D", 0),
        ("/site/cu13/include/cuda_fp8.hpp", "error", 1),
        ("sample/part.j2", "warning #1444-D", 1),
    ],
)
def test_warnings_about_the_toolkit_are_its_own(path: str, kind: str, count: int) -> None:
    """What the toolkit's headers are warned of does not fail a build; all else does."""
    log = f'{path}(7): {kind}: class "double4" was declared deprecated\n  x\n  ^\n\n'
    assert len(list(messages(log, PATHS))) == count


def test_a_log_without_messages_has_no_problems() -> None:
    """What is not a message of a compiler is not a problem of the source."""
    assert list(messages("ptxas info    : 0 bytes gmem\n\n", PATHS)) == []


def test_the_error_stands_at_the_first_problem() -> None:
    """The first problem's place leads; the others follow with theirs."""
    error = refusal(MESSAGES[2:4], "sample[arch=any]")
    assert str(error) == (
        'include/sample/shared.cuh:2: cannot open source file "none.cuh"\n'
        "sample/kernel.cu.j2:9: integer conversion resulted in a change of sign\n"
        "hint: while compiling sample[arch=any]"
    )


def test_many_problems_are_counted() -> None:
    """A flood of problems is cut, and says how many are not shown."""
    flood = [Message(where=f"a.j2:{line}", what="wrong") for line in range(SHOWN + 3)]
    assert refusal(flood, "sample").what.endswith(f"a.j2:{SHOWN - 1}: wrong\nand 3 more")
