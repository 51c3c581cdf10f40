"""The devices that `predict` knows, and the file that says so."""

import re
from importlib.resources import files

import pytest

from kernelpack.errors import KernelpackError
from kernelpack.predict.device import FILE, devices, find, read

TEXT = (files("kernelpack.predict") / FILE).read_text(encoding="utf-8")


def test_a_name_in_capitals():
    """People write B200."""
    assert find("B200") is devices()["b200"]


def test_a_name_that_is_not_known():
    """The hint lists the devices with their targets; a near name would be another device."""
    with pytest.raises(KernelpackError, match="no device `b300`") as caught:
        find("b300")
    assert caught.value.hint == "devices: h200 (sm_90a), b200 (sm_100a)"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", r"devices.toml \[h200\]: `hbm_tbs` is missing"),
        ("hbm = 4\nhbm_tbs = 4", "`hbm` is no number of a device"),
        ("hbm_tbs = -4.4", "`hbm_tbs` must be a positive number, not -4.4"),
        ("hbm_tbs = 0", "`hbm_tbs` must be a positive number, not 0"),
        ("hbm_tbs = nan", "`hbm_tbs` must be a positive number, not nan"),
        ("hbm_tbs = inf", "`hbm_tbs` must be a positive number, not inf"),
        ("hbm_tbs = true", "`hbm_tbs` must be a positive number, not True"),
        ('hbm_tbs = "4"', "`hbm_tbs` must be a positive number, not '4'"),
        ("hbm_tbs = 4.4.4", "devices.toml: is not TOML"),
    ],
)
def test_a_number_that_no_device_has(line, says):
    """The file, the device and the number are named."""
    with pytest.raises(KernelpackError, match=says):
        read(re.sub("(?m)^hbm_tbs = .*$", line, TEXT, count=1))


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [("multiprocessors", "1.5", "a positive integer"), ("target", "90", "a text")],
)
def test_a_value_of_another_kind(key, value, says):
    """What is counted, and what is a name."""
    with pytest.raises(KernelpackError, match=f"`{key}` must be {says}, not {value}"):
        read(re.sub(f"(?m)^{key} = .*$", f"{key} = {value}", TEXT, count=1))
