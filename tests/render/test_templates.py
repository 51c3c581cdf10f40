"""Our own templates: every variant of every manifest renders, and knows where it was written."""

from pathlib import Path

import pytest

from kernelpack.render.lines import origins
from kernelpack.render.render import render
from tests.machine_code.build import variants

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
VARIANTS = variants()
FIRSTS = list({variant.template: variant for variant in reversed(VARIANTS)}.values())


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)
def test_every_variant_renders(variant):
    """A variant's source holds its entry, and headers of ours alone."""
    source = render(variant, TEMPLATES)
    assert variant.entry in source.text
    assert all(header.path.startswith("kp/") for header in source.headers)


@pytest.mark.parametrize("variant", FIRSTS, ids=lambda variant: variant.template)
def test_every_line_was_written_somewhere(variant):
    """The origin of each line is a line of a template, and is that line where Jinja did nothing."""
    placed = [(line.strip(), written(origin)) for origin, line in origins(render_text(variant), "")]
    plain = [(line, there) for line, there in placed if "{" + "{" not in there and "%" not in there]
    assert [line for line, _ in plain] == [there for _, there in plain]


@pytest.mark.parametrize("variant", FIRSTS, ids=lambda variant: variant.template)
def test_golden(variant, snapshot):
    """The first variant of each template renders to this text."""
    assert render_text(variant) == snapshot


def render_text(variant):
    return render(variant, TEMPLATES).text


def written(origin):
    return (TEMPLATES / origin.name).read_text().split("\n")[origin.line - 1].strip()
