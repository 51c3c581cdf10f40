"""The `kernelpack` command: finds the verb, and turns an error into a message and an exit code.

Exit codes: 0 done, 1 a request that cannot be served or a check that found something,
2 wrong usage, 130 interrupted. Data goes to stdout, talk to stderr.
"""

import sys
from importlib import import_module

import click
import rich_click

from kernelpack import __version__
from kernelpack.cli import console
from kernelpack.errors import KernelpackError

VERBS = {
    "build": "Compile manifests into a bundle.",
    "list": "Show the variants that would be built, or why a combination is not.",
    "info": "Say what a bundle is and where it comes from.",
    "ls": "List a bundle's entries.",
    "extract": "Write a bundle's cubins, PTX and descriptions to a folder.",
    "diff": "Compare two bundles: what came, what went, what grew.",
    "check": "Hold a bundle's structure, digests and machine code against its index.",
    "run": "Run a kernel on the GPU and compare it with the float64 oracle.",
    "doctor": "Say which toolchains, driver and GPU were found, and what works here.",
}
"""Every verb and its one-line help; `cli/<verb>.py` holds a command of the same name."""


class Verbs(rich_click.RichGroup):
    """A group that imports a verb when it is asked for, so that each starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The verbs, in the order of a first acquaintance."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The verb's command; None where there is no such verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"kernelpack.cli.{cmd_name}").command
        command.short_help = VERBS[cmd_name]
        return command


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="kernelpack")
def cli() -> None:
    """Build CUDA kernels ahead of time into one bundle, and run kernels from it."""


def main() -> None:
    """Run the command line and exit."""
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except KernelpackError as error:
        console.fail(error)
        code = 1
    except (KeyboardInterrupt, click.Abort):
        console.say("interrupted")
        code = 130
    sys.exit(code if isinstance(code, int) else 0)
