"""What a family's kernels have of a manifest: the shared part and the block, each said once."""

import pytest

from kernelpack.manifest.expand import expand
from kernelpack.manifest.family import of_family
from kernelpack.spec.arch import Arch
from tests.manifest.small import TEXT, mistake, small

HOPPER = "  hopper:\n"
WITHOUT_SCALES = TEXT.replace("{name: scales, p", "{name: scales, for: blackwell, p").replace(
    "scales: {dtype", "scales: {for: blackwell, dtype"
)
OWN = f"{HOPPER}    let: {{OWN: 7}}\n"


def constants(old: str, new: str, target: str) -> dict[str, int | str]:
    """Those of a target's first variant."""
    return dict(expand(small(old, new), [Arch(target)])[0].constants)


@pytest.mark.parametrize(
    ("target", "named"), [("sm_90a", {"OWN"}), ("sm_100a", set()), ("sm_103a", set())]
)
def test_a_constant_of_a_block_is_the_familys_alone(target, named):
    """Another family's templates do not see it."""
    manifest = TEXT.replace(HOPPER, OWN).replace("[sm_100a,", "[sm_100a, sm_103a,")
    found = constants(TEXT, manifest, target)
    assert named == {"OWN"} & found.keys()


def test_the_shared_part_may_need_what_each_block_says():
    """A shared constant is made of one that differs, whichever is first."""
    text = TEXT.replace("128 * TILE", "ROW * TILE").replace(
        HOPPER, f"{HOPPER}    let: {{ROW: 64}}\n"
    )
    text = text.replace("  blackwell:\n", "  blackwell:\n    let: {ROW: 128}\n")
    made = {target: constants(TEXT, text, target)["TILE_BYTES"] for target in ("sm_90a", "sm_100a")}
    assert made == {"sm_90a": 64 * 16, "sm_100a": 128 * 16}


def test_templates_see_the_family():
    """A template that serves several families knows which."""
    assert constants("", "", "sm_90a")["FAMILY"] == "hopper"
    assert constants("[sm_100a", "[sm_103a", "sm_103a")["FAMILY"] == "blackwell"


def test_a_parameter_and_an_argument_for_one_family():
    """The others' kernels have neither."""
    first = {v.arch.name: v for v in expand(small(TEXT, WITHOUT_SCALES))}
    names = {
        target: [[p.name for p in v.params], [a.name for a in v.arguments]]
        for target, v in first.items()
    }
    assert names == {
        "sm_100a": [["x_map", "y", "scales", "rows"], ["y", "x", "scales"]],
        "sm_90a": [["x_map", "y", "rows"], ["y", "x"]],
    }


def test_launch_budget_and_cost_of_a_block():
    """Keys of `launch` and `budget` and the cost may be in a block."""
    text = TEXT.replace("cost: waves * TILE\n", "").replace("registers: 64, ", "")
    text = text.replace('  grid: ["min(tiles, sm_count)", 1, 1]\n', "")
    of = "launch: {{grid: [tiles, {0}, 1]}}\n    cost: waves + {0}\n"
    text = text.replace(HOPPER, f"{HOPPER}    {of.format(2)}    budget: {{registers: 32}}\n")
    text = text.replace("  blackwell:\n", f"  blackwell:\n    {of.format(3)}").replace(
        "{tensor_mem", "{registers: 48, tensor_mem"
    )
    found = {v.arch.name: v for v in expand(small(TEXT, text))}
    told = {
        target: (v.launch.grid[1].constant, v.cost.text, v.budget.registers)
        for target, v in found.items()
    }
    assert told == {"sm_100a": (3, "waves + 3", 48), "sm_90a": (2, "waves + 2", 32)}


@pytest.mark.parametrize(
    ("old", "new", "place", "what", "hint"),
    [
        (
            "targets: [sm_100a, sm_90a]",
            "targets: [sm_103a]",
            "24:3",
            "no target of this manifest is of the family hopper",
            "remove it, or add such a target",
        ),
        (
            HOPPER,
            f"{HOPPER}    let: {{STAGES: 1}}\n",
            "25:11",
            "is already defined under `let`",
            "",
        ),
        (HOPPER, f"{HOPPER}    derive: {{TILE: 1}}\n", "25:14", "is not a lower_case name", ""),
        (HOPPER, f"{HOPPER}    let: {{TILE: 1}}\n", "25:11", "is already defined under `axes`", ""),
        (HOPPER, f"{HOPPER}    cost: 3\n", "25:5", "`cost` is given for all families", ""),
        (
            HOPPER,
            f"{HOPPER}    launch: {{programmatic: true}}\n",
            "25:14",
            "`programmatic` is gi",
            "",
        ),
        (
            "budget: {tensor",
            "budget: {registers: 9, tensor",
            "30:14",
            "`registers` is given for",
            "",
        ),
        (HOPPER, "  ampere:\n", "24:3", "`ampere` is not one of hopper, blackwell", ""),
        ("    template: small/plain.cu.j2\n", "", "24:3", "key `template` is missing", ""),
        (
            "{name: y, p",
            "{name: y, for: volta, p",
            "48:20",
            "`volta` is not one of hopper, bla",
            "",
        ),
        (
            "  block: [128, 1, 1]\n",
            "",
            "24:3",
            "`launch` has no `block` for hopper",
            "give it under `launch`, or under `launch` of `for: hopper`",
        ),
        (
            "TILE_BYTES: 128 * TILE",
            "TILE_BYTES: ROW * TILE",
            "17:15",
            "unknown name `ROW` in `ROW * TILE`",
            "",
        ),
    ],
)
def test_mistake(old, new, place, what, hint):
    """The error of a key given twice, nowhere or for an unknown family has its line."""
    error = mistake(old, new)
    assert what in error.what
    assert (error.where, hint) == (f"small.yaml:{place}", error.hint if hint else "")


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_103a"])
def test_a_target_without_a_block(target):
    """A family that a manifest has no block for is a mistake, not the other family's kernels."""
    others = {"hopper": "blackwell", "blackwell": "hopper"}[Arch(target).family]
    start, end = TEXT.index("for:\n"), TEXT.index("arguments:\n")
    text = f"{TEXT[:start]}for: {{{others}: {{template: x.cu}}}}\n{TEXT[end:]}"
    error = mistake(TEXT, text.replace("[sm_100a, sm_90a]", f"[sm_90a, sm_100a, {target}]"))
    assert f"is of the family {Arch(target).family}, which has no block" in error.what
    assert error.hint == f"add `{Arch(target).family}:` with its `template` under `for`"
    assert error.where.startswith("small.yaml:5:")


def test_a_constant_that_one_family_lacks():
    """Where the shared part needs it, the message names the family that has it not."""
    text = TEXT.replace("128 * TILE", "ROW * TILE").replace(
        "  blackwell:\n", "  blackwell:\n    let: {ROW: 128}\n"
    )
    error = mistake(TEXT, text)
    assert error.what == "`ROW * TILE` needs `ROW`, which hopper does not have"
    assert error.hint == "define it under `for: hopper` too, or move this under `for`"
    assert error.where == "small.yaml:17:15"


def test_where_a_thing_of_a_block_stands():
    """Messages count the claims and parameters of the file, not those that a family has."""
    hopper = of_family(small(TEXT, WITHOUT_SCALES), "hopper")
    assert hopper.at("where", 1, "when") == "small.yaml:27:16"
    assert hopper.at("params", 2, "value") == "small.yaml:50:38"


def test_refused_target():
    """A target that is refused says why at its place."""
    error = mistake("[sm_100a, sm_90a]", "[sm_100a, sm_120a]")
    assert "`sm_120a` is not a target: it has 99 KiB of shared memory" in error.what
    assert error.where == "small.yaml:5:20"
