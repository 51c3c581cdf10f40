"""Where control can go: blocks, loops and what is known on the way, on a few instructions."""

import pytest

from kernelpack.machine_code.disassembler import Text
from kernelpack.machine_code.flow import Flow, flow_of
from kernelpack.machine_code.instruction import Instruction
from kernelpack.machine_code.rules import RULES

NONE = 7


def flow(*lines: str) -> Flow:
    """The flow of a program: `[@P] NAME [OPERAND …] [>LINE] [*LINE …] [=BOARD] [?BOARD]` a line.

    `>3` names line 3, `*3` lists it as a target of a jump table; `=0` frees scoreboard 0 when the
    result is there, `?0` waits for it.
    """
    return flow_of(tuple(_instruction(i, line.split()) for i, line in enumerate(lines)))


def _instruction(i: int, words: list[str]) -> Instruction:
    marks = {word[0]: int(word[1:]) for word in words if word[0] in ">=?"}
    goals = tuple(int(word[1:]) * 16 for word in words if word[0] == "*")
    rest = [word for word in words if word[0] not in ">=?*"]
    guard = rest.pop(0) if rest[0].startswith("@") else ""
    jump = (marks[">"] - i) * 16 if ">" in marks else None
    name, *operands = rest
    operands += ["0x0"] if ">" in marks else []
    text = Text(name, ",".join(operands), guard, jump)
    waits = 1 << marks["?"] if "?" in marks else 0
    return Instruction(i * 16, text, marks.get("=", NONE), waits, goals)


@pytest.mark.parametrize(
    ("lines", "successors"),
    [
        (("MOV", "EXIT", "NOP"), {0: ()}),
        (("@P0 EXIT", "MOV", "EXIT"), {0: (1,), 1: ()}),
        (("@P0 BRA >2", "MOV", "EXIT"), {0: (1, 2), 1: (2,), 2: ()}),
        (("BRA >2", "MOV", "EXIT"), {0: (2,), 2: ()}),
        (("BRA.U UP0 >2", "MOV", "EXIT"), {0: (1, 2), 1: (2,), 2: ()}),
        (("MOV", "@P0 BRA >0", "EXIT"), {0: (2, 0), 2: ()}),
        (("BSSY B0 >2", "BSYNC B0", "EXIT"), {0: (2,), 2: ()}),
        (("BSSY B0 >3", "BSYNC B0", "MOV", "EXIT"), {0: (3,), 3: ()}),
        (("CALL.REL.NOINC >3", "EXIT", "NOP", "RET"), {0: (), 3: ()}),
        (("BRX R2", "EXIT"), {0: ()}),
        (("BRX R2 *1 *3", "EXIT", "NOP", "EXIT"), {0: (1, 3), 1: (), 3: ()}),
        (("@P0 BRX R2 *2", "EXIT", "EXIT"), {0: (1, 2), 1: (), 2: ()}),
        (("MOV", "NOP"), {0: ()}),
    ],
)
def test_successors(lines, successors):
    """What follows each block that is reached; a call is taken to return."""
    found = flow(*lines)
    assert {a: after for a, after in successors.items() if a in found.blocks} == found.successors


LOOPS = (
    "MOV",  # 0
    "MOV",  # 1: of the outer loop
    "HMMA",  # 2: of the inner
    "@P0 BRA >2",
    "MEMBAR.ALL.GPU",  # 4: of the outer again
    "@P1 BRA >1",
    "EXIT",
)


def test_loops():
    """The innermost comes first; an outer one holds it."""
    inner, outer = flow(*LOOPS).loops
    assert (sorted(inner), sorted(outer)) == ([2], [1, 2, 4])


def found(rule, *lines):
    """The lines at which a rule finds something."""
    return [at.at // 16 for at in RULES[rule](flow(*lines))]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, []), ({2: "MEMBAR.SC.GPU", 4: "HMMA"}, []), ({1: "UTMALDG.2D"}, [4])],
)
def test_main_loops(changes, expected):
    """A fence counts where its own loop works, not where a loop within it does."""
    lines = [changes.get(i, line) for i, line in enumerate(LOOPS)]
    assert expected == found("barrier-in-main-loop", *lines)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("LDTM =0", "SYNCS.ARRIVE.TRANS64", "EXIT"), [1]),
        (("LDTM =0", "SYNCS.ARRIVE.TRANS64 ?0", "EXIT"), []),
        (("LDTM =0", "NOP ?0", "BAR.SYNC 1", "EXIT"), []),
        (("LDTM =0", "NOP ?1", "BAR.SYNC 1", "EXIT"), [2]),
        # They end in order, so that the last one's scoreboard is enough; the first one's is not.
        (("LDTM =0", "LDTM =1", "UCGABAR_ARV ?1", "EXIT"), []),
        (("LDTM =0", "LDTM =1", "UCGABAR_ARV ?0", "EXIT"), [2]),
        (("LDTM =0", "LDTM =1", "LDTM =0", "BAR.ARV ?0", "EXIT"), []),
        (("LDTM =0", "LDTM =1", "LDTM =0", "BAR.ARV ?1", "EXIT"), [3]),
        # One of two ways is enough.
        (("LDTM =0", "@P0 BRA >3", "NOP ?0", "SYNCS.ARRIVE", "EXIT"), [3]),
        (("@P0 BRA >2", "LDTM =0", "SYNCS.ARRIVE", "EXIT"), [2]),
        (("SYNCS.ARRIVE", "LDTM =0", "@P0 BRA >0", "EXIT"), [0]),
        (("SYNCS.ARRIVE", "LDTM =0", "NOP ?0", "@P0 BRA >0", "EXIT"), []),
        (("SYNCS.PHASECHK.TRANS64", "LDTM =0", "SYNCS.PHASECHK.TRANS64", "EXIT"), []),
        (("LDS =0", "SYNCS.ARRIVE", "EXIT"), []),
    ],
)
def test_loads_under_way(lines, expected):
    """An arrival is found where some way leaves a load from tensor memory without a wait."""
    assert expected == found("read-before-release", *lines)


ALLOCATE = "UTCATOMSWS.2CTA.FIND_AND_SET.ALIGN"
MEET = ("UCGABAR_ARV", "UCGABAR_WAIT")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((ALLOCATE, "EXIT"), [0]),
        ((*MEET, ALLOCATE, "EXIT"), []),
        (("UCGABAR_ARV", ALLOCATE, "UCGABAR_WAIT", "EXIT"), [1]),
        (("@P0 BRA >3", *MEET, ALLOCATE, "EXIT"), [3]),
        # The arm of a launch without clusters: a NOP or a barrier of the CTA, to the same place.
        (("BRA.U UP0 >4", *MEET, "BRA >5", "BAR.SYNC", ALLOCATE, "EXIT"), []),
        (("BRA.U UP0 >4", *MEET, "BRA >5", "MOV", ALLOCATE, "EXIT"), [5]),
        (("BRA.U UP0 >4", *MEET, "BRA >6", "NOP", ALLOCATE, "EXIT"), [5]),
        (("UTCATOMSWS.FIND_AND_SET.ALIGN", "EXIT"), []),
    ],
)
def test_before_a_pairs_allocation(lines, expected):
    """Every way to an allocation for a pair passes the whole of a cluster barrier."""
    assert expected == found("pair-before-peer", *lines)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((*MEET, ALLOCATE, "EXIT"), [3]),
        ((*MEET, ALLOCATE, *MEET, "EXIT"), []),
        ((*MEET, ALLOCATE, *MEET, "LDTM =0", "EXIT"), [6]),
        ((*MEET, ALLOCATE, *MEET, "UTCHMMA.2CTA", "@P0 EXIT", *MEET, "EXIT"), [6]),
        (("@P0 EXIT", *MEET, ALLOCATE, *MEET, "EXIT"), []),
        ((*MEET, ALLOCATE, "@P0 BRA >6", *MEET, "EXIT"), [6]),
        ((*MEET, ALLOCATE, "BRA.U UP0 >7", *MEET, "BRA >8", "NOP", "EXIT"), []),
        (("UTCHMMA", "LDTM =0", "EXIT"), []),
    ],
)
def test_before_a_pairs_exit(lines, expected):
    """No way leads from work on a pair to an exit without an arrival at the cluster barrier."""
    assert expected == found("pair-without-farewell", *lines)
