"""`kernelpack check`."""

import json


def test_findings(kernelpack, bundle):
    """Machine code that is no ELF is found; findings are the output, the verdict is talk."""
    said = kernelpack("check", bundle)
    assert said.code == 1
    assert said.out.startswith(f"{bundle}: lora_shrink_qkv[")
    assert said.err == f"{bundle}: 2 entries, not sound\n"


def test_json(kernelpack, bundle):
    """`--json` has a finding's parts."""
    said = kernelpack("check", bundle, "--json")
    told = json.loads(said.out)
    assert (said.code, told["entries"], len(told["findings"])) == (1, 2, 2)
    assert {"where", "what", "hint", "is_error"} == set(told["findings"][0])


def test_missing(kernelpack, tmp_path):
    """A file that is not there is a finding too."""
    said = kernelpack("check", tmp_path / "no.kpk")
    assert said.code == 1
    assert said.out.startswith(f"{tmp_path}/no.kpk: cannot be read")
