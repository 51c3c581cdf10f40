"""The `kernelpack` command: finds the verb, and turns an error into a message and an exit code.

Exit codes: 0 done, 1 a request that cannot be served or a check that found something,
2 wrong usage, 130 interrupted, 143 asked to end by SIGTERM. Data goes to stdout, talk to stderr.
"""

import os
import sys
from collections.abc import Sequence
from errno import EACCES, EROFS
from importlib import import_module
from pathlib import Path

import rich_click as click

from kernelpack import __version__
from kernelpack.cli import console, streams
from kernelpack.cli.builder import needs_builder
from kernelpack.errors import KernelpackError
from kernelpack.process import deaf, orderly
from kernelpack.spec.nearest import nearest

PROGRAM = "kernelpack"
DONE, FAILED, WRONG_USAGE, INTERRUPTED, ASKED_TO_END = 0, 1, 2, 130, 143

COMPLETION = 'eval "$(_KERNELPACK_COMPLETE=bash_source kernelpack)"'

VERBS = {
    "new": "Make a kernel of your own: a folder with its manifest, template and oracle.",
    "build": "Compile manifests into a bundle.",
    "list": "Show the variants that would be built, or why a combination is not.",
    "info": "Say what a bundle is and where it comes from.",
    "ls": "List a bundle's entries.",
    "extract": "Write a bundle's cubins, descriptions and PTX to a folder.",
    "diff": "Compare two bundles: what came, what went, what grew.",
    "merge": "Make one bundle of several, such as the shards of a build.",
    "check": "Check a bundle: structure, digests, and machine code against its index.",
    "sign": "Sign a bundle with a private key.",
    "wheel": "Wrap a bundle into wheels of data, one for each architecture.",
    "verify": "Prove variants on the CPU emulator against the float64 oracle.",
    "trace": "Show a launch on the CPU emulator over time: warps, tensor pipe, copies, waits.",
    "predict": "Predict the time of a launch on a device that need not be here.",
    "run": "Run a kernel and compare it with the float64 oracle.",
    "bench": "Time a kernel's variants on this machine's GPU.",
    "tune": "Time the variants that may serve, on this machine's GPU, for its choices.",
    "emulate": "Run a host program with its kernels on the emulator, on a machine with no GPU.",
    "cache": "Show what the cache holds; make it smaller.",
    "config": "Say how to compile and link a program that uses the C++ loader.",
    "doctor": "Say which toolchains, driver and GPUs were found, and what works here.",
}
"""Every verb and its one-line help; `cli/<verb>.py` holds a command of the same name."""


class Verbs(click.RichGroup):
    """A group that imports a verb when it is asked for, so that help and each verb start fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The verbs, in the order of a first acquaintance."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """A verb's name and line of help, with nothing of the verb imported; None if unknown."""
        return click.Command(cmd_name, help=VERBS[cmd_name]) if cmd_name in VERBS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that the first word names, and the words after it."""
        word, *rest = args
        if word not in VERBS:
            raise click.UsageError(f"no verb `{word}`. {nearest(word, VERBS)}".rstrip(), ctx)
        return word, verb(word), rest


def verb(name: str) -> click.Command:
    """The command of a verb, imported.

    Raises:
        KernelpackError: it needs a package of the builder, and that is not installed.

    """
    with needs_builder(name), deaf():
        command: click.Command = import_module(f"kernelpack.cli.{name}").command
    return command


@click.command(
    cls=Verbs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"Verbs, options, kernels and words of -k complete in a shell after {COMPLETION} (bash; "
    "zsh_source, fish_source).",
)
@click.version_option(__version__, "-V", "--version", prog_name=PROGRAM)
@click.pass_context
def cli(ctx: click.Context) -> int:
    """Build CUDA kernels ahead of time into one bundle, and run kernels from it."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return WRONG_USAGE
    _require_working_folder()
    return DONE


def _require_working_folder() -> None:
    """Most of what is done would fail without one, and would not say why."""
    try:
        Path.cwd()
    except FileNotFoundError as error:
        what, hint = "the working folder was removed", "cd to a folder that is there"
        raise KernelpackError(what, hint=hint) from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        arguments: the words after the program's name; those of this process if None.

    """
    streams.settle()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # those of others break our checks
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    asked = console.Asked()
    try:
        with orderly():
            code = cli.main(words, prog_name=PROGRAM, standalone_mode=False, obj=asked)
            streams.finish()
    except click.UsageError as error:
        code = _refuse(error)
    except KernelpackError as error:
        code = _fail(error, asked)
    except MemoryError as error:
        code = _fail(
            KernelpackError(f"this machine has no memory left: {error}", hint="give smaller sizes"),
            asked,
        )
    except BrokenPipeError:  # whoever read stdout has left: `kernelpack ls X | head`
        streams.drop()
        code = FAILED
    except OSError as error:
        where = "" if error.filename is None else str(error.filename)
        hint = _HINTS.get(error.errno or 0, "")
        code = _fail(KernelpackError(error.strerror or str(error), where=where, hint=hint), asked)
    except (KeyboardInterrupt, click.Abort):
        console.say("interrupted; what was finished is kept")
        code = INTERRUPTED
    except SystemExit as end:  # of a SIGTERM, or click's own where nobody reads stdout
        if end.code == ASKED_TO_END:
            console.say("asked to end; what was finished is kept")
        raise
    sys.exit(code or DONE)


_OTHER = "name what you may read and write; KERNELPACK_CACHE_DIR names another cache"
_HINTS = {EACCES: _OTHER, EROFS: _OTHER}
"""Hints where the system refuses."""


def _fail(error: KernelpackError, asked: console.Asked) -> int:
    """Print the error; stdout gets what it still can."""
    console.fail(error)
    try:
        if asked.json:
            console.print_error(error)
        streams.finish()
    except (OSError, KernelpackError):
        streams.drop()
    return FAILED


def _refuse(error: click.UsageError) -> int:
    """Say what is wrong with the words, and where their help is."""
    path = error.ctx.command_path if error.ctx else PROGRAM
    message = error.format_message().rstrip(".")
    console.fail(KernelpackError(message, where=path, hint=f"{path} --help"))
    return WRONG_USAGE
