"""Findings that are known."""

import pytest

from kernelpack.emulate.expected import Expectation, judge, load
from kernelpack.emulate.report import Problem
from kernelpack.errors import KernelpackError

PROBLEM = Problem(rule="race", kernel="gemm_device", place="a/b.cu:12", text="A reads, which B set")


@pytest.mark.parametrize(
    ("patterns", "schedule", "known"),
    [
        ({}, "eager", True),
        ({"kernel": "*gemm*", "place": "*b.cu:*"}, "eager", True),
        ({"schedule": "starving:*"}, "starving:0:1", True),
        ({"schedule": "starving:*"}, "lazy", False),
        ({"kernel": "gemm"}, "eager", False),
        ({"place": "*c.cu:*"}, "eager", False),
        ({"text": "* reads, which * set"}, "eager", True),
        ({"text": "* writes, *"}, "eager", False),
    ],
)
def test_patterns(patterns, schedule, known):
    """An expectation covers what all of its patterns match."""
    expectation = Expectation(rule="race", reason="known", **patterns)
    assert bool(judge(PROBLEM, [expectation], schedule).expected) is known


def test_another_rule_is_news():
    """A rule is named whole."""
    assert judge(PROBLEM, [Expectation(rule="rac", reason="known")], "eager").expected == ""


def test_a_file(tmp_path):
    """Each entry of the file is an expectation."""
    path = tmp_path / "expected.toml"
    path.write_text('[[finding]]\nrule = "race"\nreason = "known"\nkernel = "*x*"\n')
    assert load(path) == (Expectation(rule="race", reason="known", kernel="*x*"),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[finding", "not TOML"),
        ('[[finding]]\nrule = "race"\n', "`rule` and `reason` must be there"),
        ('[[finding]]\nrule = "r"\nreason = "x"\nwhere = "y"\n', "keys: rule, kernel"),
        ('[[finding]]\nrule = "r"\nreason = 5\n', "`reason` is 5\nhint: each value is a text"),
        ('[finding]\nrule = "r"\nreason = "x"\n', "each begins with [[finding]]"),
        ("finding = 5\n", "each begins with [[finding]]"),
        ("finding = [5]\n", "each begins with [[finding]]"),
        ('[[findings]]\nrule = "r"\nreason = "x"\n', "each begins with [[finding]]"),
        ("\udcff = 1", "not TOML"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, text, says):
    """A mistake in the file is told with the file's name."""
    path = tmp_path / "expected.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(KernelpackError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert says in str(error.value)
