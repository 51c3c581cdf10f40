"""Seeded faults fit today's kernels: most run only when asked for, and would go stale unseen."""

from functools import cache

import pytest

from kernelpack.spec.artifact import Source
from tests.mutation.fault import Fault, read_faults
from tests.mutation.subjects import SUBJECTS

FAULTS = read_faults()


@cache
def rendered(name: str) -> Source:
    """A subject's source without a fault."""
    subject = SUBJECTS[name]
    return subject.source(subject.variant())


def why_stale(fault: Fault) -> str:
    """Why a fault cannot be seeded: what it replaces does not occur once in its file."""
    subject = SUBJECTS[fault.subject]
    try:
        if fault.file == subject.manifest.name:
            fault.apply(subject.text())
        else:
            fault.apply_to_source(rendered(subject.name))
    except AssertionError as e:
        return str(e)
    return "" if fault.old != fault.new else f"{fault.id}: replaces a text by itself"


@pytest.mark.parametrize("name", SUBJECTS)
def test_what_faults_replace_stands_once(name: str) -> None:
    """Who changes a kernel changes its faults along."""
    of_subject = [fault for fault in FAULTS if fault.subject == name]
    stale = [why for fault in of_subject if (why := why_stale(fault))]
    assert not stale, "\n".join(stale)


def test_each_subject_has_faults() -> None:
    """No file of faults is of a subject that is gone."""
    assert {fault.subject for fault in FAULTS} == set(SUBJECTS)
