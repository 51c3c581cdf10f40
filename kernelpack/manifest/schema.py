"""A manifest file → a Manifest that holds together, or a ManifestError by line and column."""

from pathlib import Path
from typing import Any

from kernelpack.errors import ManifestError
from kernelpack.manifest.model import Manifest, validate
from kernelpack.manifest.names import check
from kernelpack.manifest.reader import Document, read


def load(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        ManifestError: `path:line:column`, what is wrong, and what was probably meant.

    """
    manifest = load_document(read(path))
    _check_folder(path, manifest)
    return manifest


def _check_folder(path: Path, manifest: Manifest) -> None:
    """A kernel in a folder of its own is called as that, by which its oracle is found."""
    folder = path.absolute().parent.name
    if path.stem == folder != manifest.kernel:
        what = f"the kernel is called `{manifest.kernel}`, and its folder `{folder}`"
        hint = "give folder, files and kernel one name"
        raise ManifestError(what, where=manifest.at("kernel"), hint=hint)


def load_document(document: Document) -> Manifest:
    """Check a document against the schema and against the rules that need the whole of it."""
    manifest = validate(document)
    check(manifest)
    return manifest


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a manifest, for editors; published in docs/reference."""
    schema = _closed(Manifest.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _closed(schema: Any) -> Any:  # noqa: ANN401 - any part of a JSON Schema
    """The schema with every mapping of names closed: a key of another form is a mistake."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(part) for key, part in schema.items()}
    return closed | ({"additionalProperties": False} if "patternProperties" in closed else {})
