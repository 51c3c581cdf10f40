"""`kernelpack info`: what a bundle is and where it comes from."""

from itertools import islice
from math import isinf
from pathlib import Path
from typing import Any

import rich_click as click

from kernelpack.bundle.format import Holds
from kernelpack.bundle.reader import Bundle, open_bundle
from kernelpack.bundle.sbom import sbom
from kernelpack.bundle.signature import signer
from kernelpack.cli import choices, console
from kernelpack.spec.arch import TARGETS
from kernelpack.spec.counted import counted


@click.command(
    "info",
    epilog=choices.examples(
        "kernelpack info kernels.kpk", "kernelpack info kernels.kpk --sbom > sbom.json"
    ),
)
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
    record = _record(opened)
    if as_json:
        console.print_json(record)
        return
    console.print_facts(_facts(record))


def _record(bundle: Bundle) -> dict[str, Any]:
    """Facts about a bundle, for programs; null where there is nothing."""
    made = bundle.provenance
    records = bundle.records()
    return {
        "bundle": str(bundle.path),
        "holds": "cubins" if bundle.holds is Holds.CUBIN else "PTX",
        "bytes": bundle.path.stat().st_size,
        "root": bundle.root,
        "shard": made.shard or None,
        "entries": len(records),
        "machine_code_bytes": sum(record.image_bytes for record in records),
        "kernels": {name: list(abis) for name, abis in bundle.kernels.items()},
        "numbers": {name: found for name in bundle.kernels if (found := _numbers(bundle, name))},
        "targets": {
            name: [f"{major}.{minor}" for major, minor in capabilities]
            for name, capabilities in bundle.targets.items()
        },
        "kernelpack": made.kernelpack,
        "toolchain": made.toolchain,
        "front_end": made.front_end,
        "release": made.release,
        "versions": dict(made.versions),
        "toolchain_digest": made.toolchain_digest,
        "sources": dict(made.sources),
        "licence": made.licence or None,
        "signed_by": signer(bundle.signature) or None,
    }


def _numbers(bundle: Bundle, kernel: str) -> dict[str, float | str | None]:
    """The real numbers of a kernel's calls, and what each is where it is left out.

    JSON has no infinity.
    """
    held = (bundle.variant(r.id) for r in bundle.records(kernel) if r.target in TARGETS)
    numbers = {each.name: each.default for variant in islice(held, 1) for each in variant.numbers}
    return {n: str(v) if v is not None and isinf(v) else v for n, v in numbers.items()}


def _facts(record: dict[str, Any]) -> dict[str, object]:
    """The same for people."""
    toolchain = f"{record['toolchain']} ({record['front_end']}, CUDA {record['release']})"
    words = {
        "shard": record["shard"] or "all of its build",
        "kernels": _each(record["kernels"], "{} (ABI {})"),
        "numbers": _each({n: list(f) for n, f in record["numbers"].items()}, "{} ({})") or "none",
        "targets": _each(record["targets"], "{} (runs on {})"),
        "toolchain": toolchain,
        "versions": ", ".join(f"{part} {version}" for part, version in record["versions"].items()),
        "sources": counted(len(record["sources"]), "file"),
        "licence": record["licence"] or "not stated",
        "signed_by": record["signed_by"] or "nobody",
    }
    told = {name: words.get(name, value) for name, value in record.items()}
    hidden = ("front_end", "release")  # the toolchain's line has them
    return {name.replace("_", " "): told[name] for name in told if name not in hidden}


def _each(found: dict[str, list[object]], form: str) -> str:
    return ", ".join(form.format(name, " and ".join(map(str, v))) for name, v in found.items())
