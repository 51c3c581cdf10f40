"""A bundle's contents and provenance, as CycloneDX 1.6 JSON for tools that audit.

All of it is in the index, under the root: this is a view. It has no time and no host, so one
bundle has one document.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from kernelpack.bundle.entry import Provenance, Record

TOOLCHAIN_LICENCE = "LicenseRef-NVIDIA-Proprietary"
"""The statements of the wheels of every part of a CUDA toolchain."""

Json = dict[str, Any]


def sbom(root: str, made: Provenance, records: Iterable[Record]) -> bytes:
    """The bill of materials of the bundle of this root; ends with a newline."""
    value = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_OID, root)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "data",
                "bom-ref": root,
                "name": "kernels.kpk",
                **_licence(made.licence),
                "properties": _properties({"root": root}),
            },
            "tools": {"components": [*_tools(made)]},
        },
        "components": [*_sources(made), *map(_machine_code, records)],
    }
    return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"


def _tools(made: Provenance) -> Iterator[Json]:
    yield {"type": "application", "name": "kernelpack", "version": made.kernelpack}
    yield {
        "type": "application",
        "name": made.toolchain,
        "version": made.release,
        "properties": _properties(
            {"front_end": made.front_end, "toolchain_digest": made.toolchain_digest}
        ),
    }
    for name, version in made.versions.items():
        wheel = {"purl": f"pkg:pypi/{name}@{version}"} if name.startswith("nvidia-") else {}
        head: Json = {"type": "application", "name": name, "version": version}
        yield head | _licence(TOOLCHAIN_LICENCE) | wheel


def _sources(made: Provenance) -> Iterator[Json]:
    for path, digest in made.sources.items():
        head: Json = {"type": "file", "bom-ref": path, "name": path, "hashes": _hashes(digest)}
        yield head | _licence(made.licences.get(path, ""))


def _machine_code(record: Record) -> Json:
    digests = {"ptx_digest": record.ptx_digest, "source_digest": record.source_digest}
    return {
        "type": "file",
        "bom-ref": record.id,
        "name": record.id,
        "hashes": _hashes(record.image_digest),
        "properties": _properties({"target": record.target, "abi": str(record.abi), **digests}),
    }


def _hashes(digest: str) -> list[Json]:
    return [{"alg": "SHA-256", "content": digest}]


def _licence(expression: str) -> Json:
    return {"licenses": [{"expression": expression}]} if expression else {}


def _properties(values: dict[str, str]) -> list[Json]:
    return [{"name": f"kernelpack:{name}", "value": value} for name, value in values.items()]
