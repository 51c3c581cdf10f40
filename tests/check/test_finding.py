"""What is found reads like an error."""

import pytest

from kernelpack.check.finding import Finding, finding
from kernelpack.errors import BundleError


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (Finding(where="a", what="b"), "a: b"),
        (Finding(where="a", what="b", hint="c"), "a: b\nhint: c"),
        (Finding(where="a", what="b", is_error=False), "a: warning: b"),
    ],
)
def test_findings_as_text(finding, text):
    """A finding reads like an error: where, what, hint."""
    assert text == str(finding)


@pytest.mark.parametrize(("where", "expected"), [("", "x.kpk"), ("x.kpk: id", "x.kpk: id")])
def test_an_error_as_a_finding(where, expected):
    """An error keeps what it says; a place that is known better takes that of its own."""
    found = finding(BundleError("damaged", where="x.kpk", hint="fetch it"), where)
    assert found == Finding(where=expected, what="damaged", hint="fetch it")
