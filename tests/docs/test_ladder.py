"""The ladder: each step is right, each mistake found; the page says what the emulator says."""

import re

import pytest

from kernelpack.cli.main import main
from kernelpack.spec.arch import Arch
from kernelpack.verify.outcome import State
from tests.docs.ladder import LADDER, STEPS, TARGETS, change, outcome, variant
from tests.docs.pages import ROOT, commands
from tests.kept import FOLDER

PAGE = "docs/guides/ladder.md"
MISTAKES = re.findall(
    r"```diff\n(.*?)```\n\n`kernelpack verify (\w+) -k (\w+) --schedule lazy` says:\n\n"
    r"```text\n(.*?)```",
    (ROOT / PAGE).read_text(),
    re.DOTALL,
)
TRACES = [words for words in commands(PAGE) if words[0] == "trace"]
pytestmark = pytest.mark.toolchain


def test_steps_build_on_each_other():
    """Each step of the page is there, for both targets, within a page or so."""
    assert [f"step{i}" for i in range(1, 6)] == [step.partition("_")[0] for step in STEPS]
    assert {step for _, step, _, _ in MISTAKES} == set(STEPS)
    lengths = [len(path.read_text().splitlines()) for path in LADDER.glob("*/*.j2")]
    assert max(lengths) <= 130


@pytest.mark.parametrize("schedule", ["lazy", "eager"])
@pytest.mark.parametrize("case", [0, 1])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_right(step, target, case, schedule):
    """Its numbers are the oracle's, and nothing is found."""
    assert outcome(step, target, schedule, case=case).state is State.RIGHT


@pytest.mark.parametrize(("diff", "step", "target", "says"), MISTAKES, ids=STEPS)
def test_the_page_says_what_the_emulator_says(diff, step, target, says):
    """A mistake of the page leads to the page's words, but for numbers."""
    old, new = change(diff)
    made = outcome(step, target, "lazy", old=old, new=new)
    said = [each.text for each in made.broken] + ([made.ended.text] if made.ended else [])
    assert any(words(each).startswith(words(says)) for each in said), said


def words(text):
    """A text without its numbers and line breaks."""
    return re.sub(r"0x[0-9a-f]+|\d+", "N", " ".join(text.split()))


OTHERS = [
    ("step2_mma", "sm_90a", "    ptx::wgmma_wait<0>();\n", "", {"wgmma-registers-in-flight"}),
    ("step3_ring", "sm_100a", "filling.free_phase()", "filling.phase", {"Deadlock"}),
    ("step4_roles", "sm_100a", "mma_commit(shared_address(&memory.empty",
     "mbarrier_arrive(shared_address(&memory.empty", {"race"}),
    ("step5_pair", "sm_100a", "CTAS * sizeof(stage)", "sizeof(stage)", {"race", "Deadlock"}),
]  # fmt: skip
"""Mistakes for the targets that the page leaves out."""


@pytest.mark.parametrize(("step", "target", "old", "new", "rules"), OTHERS)
def test_a_mistake_is_found(step, target, old, new, rules):
    """The emulator names the rule, or the end, that the mistake leads to."""
    made = outcome(step, target, "lazy", old=old, new=new)
    ended = {made.ended.kind} if made.ended else set()
    assert rules <= {each.rule for each in made.broken} | ended


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Where the page's commands are run: a folder with the examples, and the bundle."""
    folder = tmp_path_factory.mktemp("ladder")
    (folder / "examples").symlink_to(ROOT / "examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("KERNELPACK_CACHE_DIR", str(FOLDER))
        (build,) = [words for words in commands(PAGE) if words[0] == "build"]
        assert exit_code(build) == 0
        yield folder


def exit_code(words):
    with pytest.raises(SystemExit) as left:
        main(words)
    return left.value.code


@pytest.mark.parametrize("command", TRACES, ids=[words[1] for words in TRACES])
def test_pictures(here, command):
    """The page's pictures have the rows that its commands draw today."""
    assert exit_code(command) == 0
    name = command[-1]
    drawn, shown = (here / name).read_text(), (ROOT / "docs" / "pictures" / name).read_text()
    assert f"(../pictures/{name})" in (ROOT / PAGE).read_text()
    assert labels(shown) == labels(drawn)


def labels(svg):
    """The words of a picture, without numbers."""
    return {words(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)}


def test_targets():
    """Every step has one variant for each of the two families."""
    assert {Arch(t).family for t in TARGETS} == {"hopper", "blackwell"}
    assert all(variant(step, target) for step in STEPS for target in TARGETS)
