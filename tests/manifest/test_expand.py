"""From a manifest to variants: which, in which order, with which numbers; and what is too much."""

from pathlib import Path

import pytest

from kernelpack.errors import ManifestError
from kernelpack.manifest import expand as expansion
from kernelpack.manifest.expand import excluded, expand
from kernelpack.manifest.schema import load
from kernelpack.spec.arch import Arch
from tests.manifest.describe import brief, describe
from tests.manifest.small import small

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "manifests").glob("*.yaml"))

BLACKWELL = [path for path in MANIFESTS if "sm_100a" in path.read_text()]


def test_golden(snapshot):
    """The small manifest expands to these variants, to the last number."""
    assert "\n\n".join(map(describe, expand(small()))) == snapshot


def test_golden_exclusions(snapshot):
    """And these combinations are not built, for these reasons."""
    text = "\n".join(f"{e.kernel} {e.arch} {dict(e.axes)}: {e.reason}" for e in excluded(small()))
    assert text == snapshot


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_golden_of_our_manifests(path, snapshot):
    """Each manifest of ours makes these constants, and for each family first these numbers."""
    variants = expand(load(path), [Arch("sm_100a"), Arch("sm_90a")])
    firsts = {variant.arch: variant for variant in reversed(variants)}
    text = [*map(brief, variants), "", *map(describe, firsts.values())]
    assert "\n".join(text) == snapshot


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_our_manifests_keep_their_budgets(path):
    """No manifest of ours asks for more than its targets have."""
    assert expansion.check_budgets(expand(load(path))) is None


@pytest.mark.parametrize("path", BLACKWELL, ids=lambda path: path.stem)
def test_b300_has_what_b200_has(path):
    """Every kernel of sm_100a is built for sm_103a: the same tiles, the same constants."""
    b200, b300 = (expand(load(path), [Arch(name)]) for name in ("sm_100a", "sm_103a"))
    assert (
        [_but_arch(variant) for variant in b300] == [_but_arch(variant) for variant in b200] != []
    )


def _but_arch(variant):
    return [(name, value) for name, value in variant.constants if name != "ARCH"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_our_manifests_are_named_after_their_kernel(path):
    """A kernel's stem is the same in every folder."""
    assert load(path).kernel == path.stem


def test_order():
    """Variants come by target as the manifest lists them, then by the axes, the last fastest."""
    ids = [variant.id for variant in expand(small())]
    assert ids == [
        "small[arch=sm_100a,dtype=bf16,path=direct,tile=16]",
        "small[arch=sm_100a,dtype=bf16,path=direct,tile=64]",
        "small[arch=sm_100a,dtype=bf16,path=staged,tile=64]",
        "small[arch=sm_100a,dtype=fp16,path=direct,tile=16]",
        "small[arch=sm_100a,dtype=fp16,path=direct,tile=64]",
        "small[arch=sm_100a,dtype=fp16,path=staged,tile=64]",
        "small[arch=sm_90a,dtype=bf16,path=direct,tile=16]",
        "small[arch=sm_90a,dtype=fp16,path=direct,tile=16]",
    ]


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([], []),
        (["sm_90a"], ["sm_90a"] * 2),
        (["sm_103a"], []),
        (["sm_90a", "sm_103a", "sm_100a"], ["sm_90a"] * 2 + ["sm_100a"] * 6),
    ],
)
def test_targets(targets, expected):
    """Only the targets asked for are built, in that order; others than the manifest's are not."""
    variants = expand(small(), [Arch(name) for name in targets])
    assert expected == [variant.arch.name for variant in variants]


def test_excluded_and_expanded_are_the_product():
    """Every combination is either built or excluded with a reason."""
    assert len(expand(small())) + len(excluded(small())) == 2 * 2 * 2 * 2


def test_expressions_name_sizes_only():
    """What is left in an expression are sizes of the problem and the device."""
    variant = expand(small())[0]
    assert variant.cost.names == {"m", "sm_count"}
    assert variant.guards[1].when.names == {"x_dtype"}


def test_nothing_left():
    """A `where` that leaves a target nothing is a mistake, not an empty build."""
    with pytest.raises(ManifestError, match="excludes every combination for sm_90a") as error:
        expand(small("TILE == 16, reason: Hopper", "TILE == 99, reason: Hopper"))
    assert error.value.where == "small.yaml:27:7"


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("128 * TILE", "128 // (TILE - 16)", "17:15", "`TILE_BYTES` has no value for arch=sm_100a"),
        (
            "when: TILE == 16",
            "when: TILE // 0",
            "27:16",
            "has no value for arch=sm_90a, DTYPE=bf16",
        ),
        ("registers: 64", "registers: 64 // (TILE - 16)", "62:21", "divides by zero"),
        ("workspace_bytes: 4 * m", "workspace_bytes: 4 // (TILE - 16)", "61:18", "divides by zero"),
    ],
)
def test_a_constant_without_a_value(old, new, place, message):
    """An expression that has no value for a combination is a mistake at its place."""
    manifest = small(old, new)
    with pytest.raises(ManifestError, match=message) as error:
        expand(manifest)
    assert error.value.where == f"small.yaml:{place}"


def test_an_excluded_combination_needs_no_constants():
    """A constant that would have no value is not asked for where `where` excludes first."""
    manifest = small("128 * TILE", "128 * TILE // (2 - (PATH == 'staged') * (TILE == 16) * 2)")
    assert len(expand(manifest)) == 8


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("MAX_COMBINATIONS", "the manifest has 16 combinations, more than 3"),
        ("MAX_VARIANTS", "the manifest makes 8 variants, more than 3"),
    ],
)
def test_too_many(monkeypatch, limit, message):
    """A manifest that explodes is refused, with the axis that multiplies most."""
    monkeypatch.setattr(expansion, limit, 3)
    with pytest.raises(ManifestError, match=message) as error:
        expand(small("[16, 64]", "[16, 64]  # widest"))
    assert error.value.where == "small.yaml:11:3"
    assert error.value.hint == "axis `DTYPE` alone multiplies by 2"


def test_definitions_that_double_are_refused():
    """Chained definitions cannot grow an expression without bound."""
    chain = "".join(f"  x{i + 1}: x{i} + x{i}\n" for i in range(40))
    manifest = small("  tiles: ", f"  x0: m + 1\n{chain}  tiles: x40 + ")
    with pytest.raises(ManifestError, match="is more than 4096 operations long"):
        expand(manifest)
