"""A build's report: each mistake once, whatever number of variants has it."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelpack.build.options import Outcome, Report, State
from kernelpack.cli.outcomes import messages, tell
from kernelpack.errors import BudgetError, CompileError


def failed(variant_id, error):
    return Outcome(variant_id=variant_id, state=State.FAILED, error=error)


def warned(variant_id):
    return Outcome(variant_id=variant_id, state=State.COMPILED, warnings=("an old ptxas",))


def report(*outcomes):
    return Report(
        outcomes=outcomes,
        bundle=Path("x.kpk"),
        root="",
        written=False,
        toolchain="cuda-13.4 (nvrtc)",
        seconds=1.0,
    )


SYNTAX = CompileError("expected a `;`", where="k.cu.j2:3", hint="end the statement")
TOLD = "error: k.cu.j2:3: expected a `;`\nhint: end the statement"


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], []),
        (
            [failed("k[a=1]", SYNTAX)],
            [f"{TOLD}\n  in k[a=1]"],
        ),
        (
            [failed("k[a=1]", SYNTAX), failed("k[a=2]", SYNTAX), failed("k[a=3]", SYNTAX)],
            [f"{TOLD}\n  in k[a=1] and 2 more"],
        ),
        (
            [failed(f"k[a={i}]", BudgetError("spills", where=f"k[a={i}]")) for i in (1, 2)],
            ["error: k[a=1]: spills\n  and 1 more"],
        ),
        (
            [failed(f"k[a={i}]", BudgetError(f"uses {i}", where=f"k[a={i}]")) for i in (1, 2, 3)],
            ["error: k[a=1]: uses 1\n  and 2 more"],
        ),
        (
            [failed("k[a=1]", BudgetError("spills", where="k[a=1]"))],
            ["error: k[a=1]: spills"],
        ),
        (
            [warned("k[a=1]"), warned("k[a=2]")],
            ["warning: an old ptxas\n  in k[a=1] and 1 more"],
        ),
    ],
)
def test_messages(outcomes, expected):
    """A message comes once, with the first variant it is about and the number of others."""
    assert list(messages(report(*outcomes))) == expected


def test_killed_compile_is_told(capsys):
    """A compile that was killed and tried again is reported: memory is short."""
    outcome = Outcome(variant_id="k[a=1]", state=State.COMPILED, killed_by="SIGKILL")
    tell(report(outcome), dry_run=True, explain=False)
    assert "k[a=1]: killed by SIGKILL, compiled once more" in capsys.readouterr().err


def test_failures_have_no_reasons(capsys):
    """`--explain` lists what was compiled; earlier failures are errors, once."""
    tell(report(failed("k[a=1]", SYNTAX)), dry_run=False, explain=True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("outcomes", "seconds", "expected"),
    [
        ([], 0.0, "0 variants with cuda-13.4 (nvrtc) in 1.0 s: nothing to do\n"),
        (
            [warned("k[a=1]")],
            0.8,
            "1 variant with cuda-13.4 (nvrtc) in 1.0 s, 0.8 s of them packing: 1 compiled\n",
        ),
    ],
)
def test_sum(capsys, outcomes, seconds, expected):
    """How many there were, how long it took, and how long of that the files."""
    tell(replace(report(*outcomes), packing_seconds=seconds), dry_run=True, explain=False)
    assert expected in capsys.readouterr().err
