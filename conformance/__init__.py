"""Conformance: programs of others, known to be right on hardware, run unmodified on the emulator.

`python -m conformance` fetches their sources from PyPI (`requirements/`), compiles each, runs it
under each schedule, and reports the result. A program must print that its results are right, and
the emulator must find nothing that `expected.toml` does not list with its reason.
"""
