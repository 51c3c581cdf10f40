"""Variant → Source: its template filled, lines placed, headers found, linkage checked."""

from collections.abc import Sequence
from pathlib import Path

from kernelpack.render import lint
from kernelpack.render.environment import fill
from kernelpack.render.includes import closure
from kernelpack.render.lines import place
from kernelpack.render.templates import Templates
from kernelpack.spec.artifact import Source
from kernelpack.spec.variant import Variant


def render(variant: Variant, templates: Path, kernels: Sequence[Path] = ()) -> Source:
    """The source of one variant.

    A template sees every constant of the variant under its UPPER_CASE name, `variant` (`id`,
    `entry`, `arch`, `kernel`) and `template`, its own path.

    Args:
        variant: the kernel with its constants.
        templates: the folder of templates, with `include/` in it.
        kernels: folders of your own kernels, with their templates.

    Raises:
        RenderError: the template or a header is missing or wrong; at its line.

    """
    name = variant.template
    values = {**dict(variant.constants), "variant": variant, "template": name}
    folders = tuple(folder.resolve() for folder in kernels)
    filled = fill(name, Templates(templates.resolve(), folders), values)
    text = place(filled.text)
    headers = closure(text, name, templates, folders)
    lint.check(text, name)
    for header in headers:
        lint.check(header.text, header.path)
    lint.check_pasted([(text, name), *((header.text, header.path) for header in headers)])
    return Source(
        variant_id=variant.id,
        entry=variant.entry,
        name=name,
        text=text,
        headers=headers,
        parts=filled.parts,
    )
