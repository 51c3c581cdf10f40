"""The way in: `kernelpack` and `python -m kernelpack`."""

import signal
import sys

import pytest

from kernelpack.__main__ import main


class Interrupting:
    """An importer at which somebody presses Ctrl-C; it notes whether the import went on."""

    went_on = False

    def find_spec(self, name, path=None, target=None):
        if name == "kernelpack.cli.main":
            signal.raise_signal(signal.SIGINT)
            self.went_on = True


def test_interrupted_while_importing(monkeypatch):
    """A Ctrl-C before the command is there is heard after the import: code 130, and no trace."""
    importer = Interrupting()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.delitem(sys.modules, "kernelpack.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [importer, *sys.meta_path])
    with pytest.raises(SystemExit) as left:
        main()
    assert (left.value.code, importer.went_on) == (130, True)


def test_runs(monkeypatch, capsys):
    """Otherwise it is the command."""
    monkeypatch.setattr(sys, "argv", ["kernelpack", "--version"])
    with pytest.raises(SystemExit) as left:
        main()
    assert (left.value.code, capsys.readouterr().out.startswith("kernelpack, version")) == (0, True)
