"""`kernelpack`, also as `python -m kernelpack`: the command line, with Ctrl-C heard from the start.

Importing the command takes a while; an interrupt meanwhile shows no trace.
"""

import sys

from kernelpack.process import deaf


def main() -> None:
    """Run the command line and exit."""
    try:
        with deaf():
            from kernelpack.cli.main import main as run  # noqa: PLC0415 - see above
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
