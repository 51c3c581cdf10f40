"""Findings that are known."""

import pytest

from kernelpack.emulate.expected import Expectation, judge, load
from kernelpack.emulate.options import Options
from kernelpack.emulate.report import Launch, Trouble
from kernelpack.errors import KernelpackError

TROUBLE = Trouble(rule="race", kernel="gemm_device", place="a/b.cu:12", text="A reads, which B set")


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
    assert bool(judge(TROUBLE, [expectation], schedule).expected) is known


def test_another_rule_is_news():
    """A rule is named whole."""
    assert judge(TROUBLE, [Expectation(rule="rac", reason="known")], "eager").expected == ""


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
        (
            '[[finding]]\nrule = "rcae"\nreason = "x"\n',
            "no rule `rcae`\nhint: did you mean `race`?",
        ),
        ('[[finding]]\nrule = "?"\nreason = "x"\n', "rules: kernelpack emulate --rules"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, text, says):
    """The error of a mistake in the file has the file's name."""
    path = tmp_path / "expected.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(KernelpackError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert says in str(error.value)


@pytest.mark.parametrize("rule", ["race", "deadlock", "trap", "steplimit", "problem", "tensormap"])
def test_faults_and_failed_calls_can_be_expected(tmp_path, rule):
    """By the name that is in brackets, or that of the error."""
    path = tmp_path / "expected.toml"
    path.write_text(f'[[finding]]\nrule = "{rule}"\nreason = "known"\n')
    assert [rule] == [each.rule for each in load(path)]


@pytest.mark.parametrize(
    ("patterns", "told"),
    [({"rule": "race"}, 0), ({"rule": "trap"}, 1), ({"rule": "trap", "kernel": "other"}, 0),
     ({"rule": "trap", "schedule": "lazy"}, 0)],
)  # fmt: skip
def test_an_expectation_that_nothing_met_is_told(patterns, told):
    """Of a launch that it is about; it is not a mistake, for schedules differ."""
    launch = Launch(kernel="gemm_device", grid=(1, 1, 1), block=(1, 1, 1), cluster=(1, 1, 1),
                    shared_bytes=0, troubles=(TROUBLE,))  # fmt: skip
    options = Options(expected=(Expectation(reason="known", **patterns),))
    assert told == len(list(options.unmet([launch])))
