"""The way in: `kernelpack` and `python -m kernelpack`."""

import sys

import pytest

from kernelpack.__main__ import main


class Interrupting:
    """An importer at which somebody presses Ctrl-C."""

    def find_spec(self, name, path=None, target=None):
        if name == "kernelpack.cli.main":
            raise KeyboardInterrupt


def test_interrupted_while_importing(monkeypatch):
    """A Ctrl-C before the command is there ends it with code 130, and without a trace."""
    monkeypatch.delitem(sys.modules, "kernelpack.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130


def test_runs(monkeypatch, capsys):
    """Otherwise it is the command."""
    monkeypatch.setattr(sys, "argv", ["kernelpack", "--version"])
    with pytest.raises(SystemExit) as left:
        main()
    assert (left.value.code, capsys.readouterr().out.startswith("kernelpack, version")) == (0, True)
