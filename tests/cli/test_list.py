"""`kernelpack list`: variants on stdout, counts on stderr."""

import json

import pytest

IDS = [f"fill[arch=sm_90a,size={size}]" for size in (1, 2, 3)]


@pytest.fixture
def excluding(project):
    """The project with one size that is not built."""
    where = "where:\n  - {when: SIZE != 2, reason: two is left out}\nfor:"
    project.manifest.write_text(project.manifest.read_text().replace("for:", where))
    return project


def test_lists_the_variants(kernelpack, project):
    """Every variant that would be built, in order."""
    said = kernelpack("list")
    assert (said.code, said.out.splitlines(), said.err) == (0, IDS, "3 variants\n")


def test_explain(kernelpack, excluding):
    """`--explain` adds the combinations that are not built, each with its reason."""
    said = kernelpack("list", "--explain")
    assert said.out.splitlines() == [IDS[0], IDS[2], f"not {IDS[1]}: two is left out"]
    assert said.err == "2 variants, 1 excluded\n"


def test_explain_by_reason(kernelpack, excluding):
    """Combinations of one reason are one line: the first, and how many more."""
    text = excluding.manifest.read_text()
    excluding.manifest.write_text(text.replace("SIZE != 2", "SIZE == 2"))
    said = kernelpack("list", "--explain")
    assert said.out.splitlines() == [IDS[1], f"not {IDS[0]} and 1 more: two is left out"]
    assert said.err == "1 variant, 2 excluded\n"


def test_explain_of_a_choice(kernelpack, excluding):
    """`-k` chooses among the excluded combinations too."""
    assert kernelpack("list", "--explain", "-k", "size=1").out.splitlines() == IDS[:1]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [("size=2", IDS[1:2]), ("not size=2", [IDS[0], IDS[2]]), ("sm_100a", [])],
)
def test_keep(kernelpack, project, keep, expected):
    """`-k` keeps the variants whose id matches."""
    assert kernelpack("list", "-k", keep).out.splitlines() == expected


def test_keep_twice(kernelpack, project):
    """Of several `-k` all must match, whatever their words."""
    said = kernelpack("list", "-k", "size=1 or size=2", "-k", "size=2 or size=3")
    assert said.out.splitlines() == IDS[1:2]


def test_target(kernelpack, project):
    """A target that no manifest has gives no variants, and a note says so."""
    said = kernelpack("list", "--target", "sm_100a")
    assert (said.code, said.out) == (0, "")
    assert said.err == "fill is not for sm_100a: it is for sm_90a\n0 variants\n"


def test_json(kernelpack, excluding):
    """`--json` gives names and reasons."""
    told = json.loads(kernelpack("list", "--explain", "--json").out)
    assert told == {"variants": [IDS[0], IDS[2]], "excluded": {IDS[1]: "two is left out"}}


def test_bad_keep(kernelpack, project):
    """A choice that does not parse says where."""
    said = kernelpack("list", "-k", "a and")
    assert said.code == 1
    assert "error: -k 'a and': the choice does not parse at `the end`" in said.err


def test_budget(kernelpack, project):
    """A launch that asks for more than the budget is found before anything is compiled."""
    text = project.manifest.read_text()
    project.manifest.write_text(text.replace("block: [32, 1, 1]", "block: [2048, 1, 1]"))
    said = kernelpack("list")
    assert said.code == 1
    assert said.err.splitlines()[1].startswith("error: ")


def test_missing_manifest(kernelpack, tmp_path):
    """A manifest that is not there is named."""
    said = kernelpack("list", tmp_path / "no.yaml")
    assert (said.code, said.out) == (1, "")
    assert f"error: {tmp_path}/no.yaml" in said.err


def test_a_manifest_meant(kernelpack, project):
    """Where one of the project's own was meant, it is named by the path to give."""
    own = project.manifest
    said = kernelpack("list", f"elsewhere/{own.name}")
    assert (
        f"did you mean `{own}`?" in said.err or f"did you mean `manifests/{own.name}`?" in said.err
    )


def test_what_comes_with_kernelpack(kernelpack):
    """The manifests of kernelpack itself are found."""
    assert "lora_shrink_qkv[arch=sm_100a," in kernelpack("list").out


def test_keep_nothing(kernelpack, project):
    """A choice of nothing is an error, and says what was meant."""
    said = kernelpack("list", "-k", "sice=1")
    assert (said.code, said.out) == (1, "")
    assert "did you mean `size=1`?" in said.err
