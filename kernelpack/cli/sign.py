"""`kernelpack sign`: say that a bundle is yours, so that others may ask for it."""

from pathlib import Path

import rich_click as click

from kernelpack.bundle.reader import open_entries
from kernelpack.bundle.signature import signed, signer
from kernelpack.cli import choices, console
from kernelpack.files import publish


@click.command("sign", epilog=choices.examples("kernelpack sign kernels.kpk --key key.pem"))
@choices.bundle
@click.option(
    "--key",
    type=choices.SomePath(path_type=Path, dir_okay=False),
    required=True,
    help="A private key of Ed25519, a PEM file without a password.",
)
@choices.as_json
def command(bundle: Path, key: Path, as_json: bool) -> None:
    """Sign a bundle with a private key.

    The signature is over the root, which leads to every byte that a reader uses, those of the PTX
    beside the bundle too; an earlier one is replaced. A build writes bundles unsigned, and what
    `wheel` takes apart is written anew, so sign last: `kernelpack wheel --key` signs the parts.
    Keys come from `openssl genpkey -algorithm ed25519 -out key.pem` and
    `openssl pkey -in key.pem -pubout -out key.pub.pem`.
    """
    opened = open_entries(bundle)
    opened.verify_all()
    publish(bundle.resolve(), signed(opened.verified_bytes(), key))
    owner = signer(open_entries(bundle).signature)
    if as_json:
        console.print_json({"bundle": str(bundle), "root": opened.root, "signed_by": owner})
    console.say(f"{bundle}: signed by {owner}")
