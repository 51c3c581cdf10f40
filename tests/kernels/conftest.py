"""All of kernelpack's kernels, built once for the whole run; the oracle of one's own, changed."""

import re

import pytest

from kernelpack.kernels.registry import known
from tests.kernels.own import ORACLE, own
from tests.machine_code.conftest import bundle

__all__ = ["bundle"]


@pytest.fixture
def written(tmp_path):
    """The definition of an oracle: the usual one, with texts replaced."""

    def write(**changes):
        text = ORACLE
        for old, new in changes.items():
            text = re.sub(f"(?m)^.*{old}.*$", new, text)
        return known((own(tmp_path, text),))["twice"]

    return write
