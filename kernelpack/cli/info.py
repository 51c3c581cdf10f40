"""`kernelpack info`: what a bundle is and where it comes from."""

from pathlib import Path

import rich_click as click

from kernelpack.bundle.format import Holds
from kernelpack.bundle.reader import Bundle, open_bundle
from kernelpack.bundle.sbom import sbom
from kernelpack.bundle.signature import signer
from kernelpack.cli import choices, console


@click.command("info")
@choices.bundle
@choices.as_json
@click.option(
    "--sbom", "as_sbom", is_flag=True, help="Print its bill of materials: CycloneDX JSON."
)
def command(bundle: Path, as_json: bool, as_sbom: bool) -> None:
    """Say what a bundle is and where it comes from.

    `signed by` is what the file states; `check --key` proves it.
    """
    opened = open_bundle(bundle)
    if as_sbom:
        print(sbom(opened.root, opened.provenance, opened.records()).decode(), end="")
        return
    facts = _facts(opened)
    if as_json:
        console.print_json(facts | {"sources": dict(opened.provenance.sources)})
        return
    console.print_facts({name: _words(value) for name, value in facts.items()})


def _facts(bundle: Bundle) -> dict[str, object]:
    made = bundle.provenance
    records = bundle.records()
    return {
        "bundle": str(bundle.path),
        "holds": "cubins" if bundle.holds is Holds.CUBIN else "PTX",
        "bytes": bundle.path.stat().st_size,
        "root": bundle.root,
        "shard": made.shard or "all of its build",
        "entries": len(records),
        "machine code bytes": sum(record.image_bytes for record in records),
        "kernels": {name: list(abis) for name, abis in bundle.kernels.items()},
        "targets": {
            name: [f"{major}.{minor}" for major, minor in capabilities]
            for name, capabilities in bundle.targets.items()
        },
        "kernelpack": made.kernelpack,
        "toolchain": f"{made.toolchain} ({made.front_end}, CUDA {made.release})",
        "parts": dict(made.versions),
        "toolchain digest": made.toolchain_digest,
        "source files": len(made.sources),
        "licence": made.licence or "not stated",
        "signed by": signer(bundle.signature) or "nobody",
    }


def _words(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(part)}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else value
