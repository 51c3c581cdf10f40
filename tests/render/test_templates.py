"""Our own templates: every variant of every manifest renders, and knows where it was written."""

import re
from functools import cache
from pathlib import Path

import pytest

from kernelpack.render.lines import origins
from kernelpack.render.render import render
from tests.machine_code.build import variants

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
VARIANTS = variants()
FILES = [path.relative_to(TEMPLATES) for path in TEMPLATES.rglob("*") if path.is_file()]
NAMED = sorted(str(path) for path in FILES if path.parts[0] != "include")
"""Every template and part, by its path."""
FIRSTS = list({variant.template: variant for variant in reversed(VARIANTS)}.values())


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)
def test_every_variant_renders(variant):
    """A variant's source holds its entry, and headers of ours alone."""
    source = rendered(variant)
    assert variant.entry in source.text
    assert all(header.path.startswith("kp/") for header in source.headers)


def test_every_template_is_read():
    """Each file of a kernel is read by some variant, and macros by some kernel."""
    read = {part.path for variant in VARIANTS for part in rendered(variant).parts}
    assert set(NAMED) <= read


@pytest.mark.parametrize("name", NAMED)
def test_a_part_has_its_own_name(name):
    """A template is `.j2`; what only templates include is `.inl.cuh`, for it is not a header."""
    assert name.endswith((".j2", ".inl.cuh"))


def test_an_include_names_a_file():
    """Whole, so that whoever looks for the users of a part finds them."""
    texts = {name: (TEMPLATES / name).read_text() for name in NAMED}
    asked = {
        name: re.findall(r"{%-? *(?:include|from) +(.+?) ", text) for name, text in texts.items()
    }
    whole = {f'"{name}"' for name in NAMED}
    assert {name: set(words) - whole for name, words in asked.items() if set(words) - whole} == {}


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


@cache
def rendered(variant):
    """A variant's source; rendered once."""
    return render(variant, TEMPLATES)


def render_text(variant):
    return rendered(variant).text


def written(origin):
    return (TEMPLATES / origin.name).read_text().split("\n")[origin.line - 1].strip()
