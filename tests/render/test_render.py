"""A variant and its template become a source that knows its lines, its headers and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelpack.errors import RenderError
from kernelpack.render import limits
from kernelpack.render.lines import origins
from kernelpack.render.render import render
from tests.fakes.variants import variant

TEMPLATES = Path(__file__).parent / "templates"
CONSTANTS = {"TILE": 64, "DTYPE": "bf16", "PATH": "staged", "STAGES": 3}


def small(template="small/plain.cu.j2", **constants):
    """A variant of the small template."""
    given = CONSTANTS | constants
    return replace(variant(), template=template, constants=tuple(given.items()))


def rendered(tmp_path, text, **constants):
    """The source of a template of this text."""
    (tmp_path / "t.cu.j2").write_text(text)
    return render(small("t.cu.j2", **constants), tmp_path)


def test_golden(snapshot):
    """The small template renders to this text, directives and all."""
    assert render(small(), TEMPLATES).text == snapshot


@pytest.mark.parametrize("constants", [{}, {"PATH": "direct"}, {"TILE": 16}])
def test_every_line_says_where_it_was_written(constants):
    """The text at the origin of a line is that line, but for what Jinja put in."""
    source = render(small(**constants), TEMPLATES)
    written = [(line.strip(), template_line(origin)) for origin, line in origins(source.text, "")]
    plain = [(line, there) for line, there in written if "{{" not in there and "{%" not in there]
    assert [line for line, _ in plain] == [there for _, there in plain]
    assert len(plain) >= 12


def template_line(origin):
    """The line of a template that a line of output came from."""
    return (TEMPLATES / origin.name).read_text().split("\n")[origin.line - 1].strip()


@pytest.mark.parametrize(
    ("line", "origin"),
    [
        ("constexpr int TILE = 64;", "small/plain.cu.j2:6"),
        ("constexpr int STAGES = 3;", "small/plain.cu.j2:9"),
        ("    int v0 = 0;", "small/body.cu.j2:4"),
        ("    int v1 = 1;", "small/body.cu.j2:4"),
        ("    return v0 + v1;", "small/body.cu.j2:6"),
        ("    float sum = 0;", "macros/loads.j2:3"),
        ("    sum += y[i];", "macros/loads.j2:5"),
        ("    y[0] = TILE;", "small/plain.cu.j2:15"),
    ],
)
def test_origin(line, origin):
    """Lines after a block, in a loop, in an include and in a macro are where they were written."""
    found = {text: str(place) for place, text in origins(render(small(), TEMPLATES).text, "")}
    assert found[line] == origin


def test_no_directive_in_a_comment_or_a_macro_definition(snapshot):
    """A directive waits until a comment, or lines joined by a backslash, have ended."""
    assert render(small("small/joined.cu.j2"), TEMPLATES).text == snapshot


def test_headers():
    """Every header of ours that is reached, once, in the order in which it is reached."""
    headers = render(small(), TEMPLATES).headers
    assert [h.path for h in headers] == ["kp/first.cuh", "kp/deep/second.cuh", "kp/third.cuh"]
    assert headers[2].text == (TEMPLATES / "include/kp/third.cuh").read_text()


def test_names():
    """A source has its variant's id and entry, and the template's path under the folder."""
    source = render(small(), TEMPLATES)
    assert (source.variant_id, source.entry) == (small().id, small().entry)
    assert source.name == "small/plain.cu.j2"


def test_twice_the_same():
    """The same variant renders to the same bytes, from whatever folder it is asked."""
    assert render(small(), TEMPLATES) == render(small(), TEMPLATES / ".." / "templates")


def test_no_path_of_this_machine():
    """Nothing of where the templates lie is in the source."""
    assert str(TEMPLATES) not in render(small(), TEMPLATES).text


def test_an_edit_is_seen(tmp_path):
    """A template that changes renders anew, in the same process and the same instant."""
    first = rendered(tmp_path, "int a;\n")
    second = rendered(tmp_path, "int b;\n")
    assert (first.text[-7:], second.text[-7:]) == ("int a;\n", "int b;\n")


def test_the_last_line_ends_as_it_was_written(tmp_path):
    """A final newline is neither added nor lost."""
    assert rendered(tmp_path, "int a;").text == '#line 1 "t.cu.j2"\nint a;'


def test_words_stay_words(tmp_path):
    """Constants are put in as they are: no escaping of `<` or `&`."""
    assert rendered(tmp_path, "a < b && {{ X }}", X="x & y").text.endswith("a < b && x & y")


@pytest.mark.parametrize(
    ("text", "line", "what", "hint"),
    [
        ("a\n{{ TILES }}", 2, "'TILES' is undefined", "did you mean `TILE`?"),
        ("{% if TIL == 1 %}{% endif %}", 1, "'TIL' is undefined", "did you mean `TILE`?"),
        ("{{ variant.idd }}", 1, "has no attribute 'idd'", ""),
        ("a\n\n{% if %}", 3, "Expected an expression", ""),
        ("a\n{% endif %}", 2, "unknown tag 'endif'", ""),
        ("{% for i in range(3) %}\n", 1, "Unexpected end of template", ""),
        ("a\n{{ 1 // 0 }}", 2, "ZeroDivisionError", ""),
        ("a\n{{ TILE + DTYPE }}", 2, "TypeError", ""),
        ("a\n{{ {}['x'] }}", 2, "has no attribute 'x'", ""),
        ("{{ 'b16' | c_type }}", 1, "unknown type `b16`", "did you mean `bf16`?"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", 1, "RecursionError", ""),
        ('a\n{% include "smal.j2" %}', 2, "there is no template `smal.j2`", "templates: t.cu.j2"),
        ('{% include "../t.cu.j2" %}', 1, "there is no template `../t.cu.j2`", None),
        ('{% include "/etc/hosts" %}', 1, "there is no template `/etc/hosts`", None),
        ("{{ 'x' * 10**10 }}", 1, "`*` makes 10000000000 elements, more than 1048576", ""),
        ("{{ 10**10 * [0] }}", 1, "`*` makes 10000000000 elements", ""),
        ("{{ 2**(2**30) }}", 1, "`**` makes a number of more than 65536 bits", ""),
        ("{{ '%1000000000000d' % 1 }}", 1, "`%` makes 1000000000000 elements", ""),
        ("{{ '%*d' % (10**9, 1) }}", 1, "`%` makes 1000000000 elements", ""),
        ("{{ '{:>1000000000}'.format(1) }}", 1, "`format` makes 1000000000 elements", ""),
        ("{{ '{:{}}'.format(1, 10**9) }}", 1, "`format` makes 1000000000 elements", ""),
        ("{{ '%.9999999f' | format(1) }}", 1, "`format` makes 9999999 elements", ""),
        ("{{ 'x' | center(10**10) }}", 1, "`center` makes 10000000000 elements", ""),
        ("{{ 'x'.zfill(10**10) }}", 1, "`zfill` makes 10000000000 elements", ""),
        ("{{ 'x' | indent(10**10) }}", 1, "`indent` makes 10000000000 elements", ""),
        ("{{ [1] | batch(10**10, 0) | list }}", 1, "`batch` makes 10000000000 elements", ""),
        ("{% set x = 'a' * 9999 %}{{ x | replace('a', x) }}", 1, "`replace` makes", ""),
        ("{% set x = 'a' * 9999 %}{{ x.join([1] * 9999) }}", 1, "`join` makes 99990000", ""),
        ("{% set x = 'a' * 999999 %}\n{{ x + x }}", 2, "`+` makes 1999998 elements", ""),
        ("{% set x = 'a' * 999999 %}\n{{ x ~ x }}", 2, "`~` makes 1999998 elements", ""),
        ("{{ lipsum() }}", 1, "'lipsum' is undefined", ""),
        ("{{ [1, 2] | random }}", 1, "No filter named 'random'", ""),
        ("{{ ''.__class__ }}", 1, "access to attribute '__class__'", ""),
        ("a\n#include <kp/x.cuh>", 2, "there is no header <kp/x.cuh>", None),
        ('a\n#include "x.cuh"', 2, '`#include "x.cuh"` is in quotes', "write #include <kp/…>"),
        ("#define H <kp/x.cuh>\n#include H", 2, "`#include H` names no header", "write #include"),
        ("#include \\\n<kp/x.cuh>", 1, "names no header", "write #include"),
        ("#include </tmp/x.h>", 1, "`#include </tmp/x.h>` is a path of this machine", None),
        ("#include <cuda/../../x.h>", 1, "is a path of this machine", None),
        ("#include_next <kp/x.cuh>", 1, "`#include_next <kp/x.cuh>` is no #include", None),
        ("#import <kp/x.cuh>", 1, "is no #include", None),
        ("%:include H", 1, "`#include H` names no header", None),
        ('#if __has_include("x.h")', 1, "asks for a header that may come and go", "ask for one of"),
        ("#if __has_include(<kp/x.cuh>)", 1, "asks for a header that may come and go", None),
        ("#if __has_include(H)", 1, "asks for a header that may come and go", None),
        ("a\nint x = f(__TIME__);", 2, "`__TIME__` is another text in each build", "machine code"),
        ("const char* d = __DATE__ __TIMESTAMP__;", 1, "`__DATE__` is another text", None),
        ("a\nb\0c", 2, "holds a NUL byte", "take it out"),
        ("#include <kp/../../t.cu.j2>", 1, "there is no header", None),
        ("a\n\nstatic __device__ int x;", 3, "device variable `x` has internal linkage", None),
    ],
)
def test_mistake(tmp_path, text, line, what, hint):
    """A mistake in a template is reported at its line, with what was probably meant."""
    with pytest.raises(RenderError) as error:
        rendered(tmp_path, text)
    assert what in error.value.what
    assert error.value.where == f"t.cu.j2:{line}"
    assert hint is None or error.value.hint.startswith(hint)


HEADERS = "".join(f"#include <kp/{name}.cuh>\n" for name in "ab")


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        ("#if 0\n#include <kp/gone.cuh>\n#endif\n" + HEADERS, "ab"),
        ("# if 0\n#ifdef X\n#else\n#include H\n#endif\n#else\n#include <kp/a.cuh>\n#endif", "a"),
        ("#if 0\n#include <kp/a.cuh>\n#elif X\n#include <kp/b.cuh>\n#endif", "b"),
        ("#if 0 || 1\n" + HEADERS + "#endif", "ab"),
        ("#ifdef X\n" + HEADERS + "#endif", "ab"),
    ],
)
def test_what_is_never_compiled(tmp_path, text, reached):
    """What an `#if 0` holds is not looked for; what another condition holds is."""
    (tmp_path / "include" / "kp").mkdir(parents=True)
    for name in "ab":
        (tmp_path / "include" / "kp" / f"{name}.cuh").write_text("")
    source = rendered(tmp_path, text)
    assert [f"kp/{name}.cuh" for name in reached] == [h.path for h in source.headers]


def test_a_byte_order_mark(tmp_path):
    """An editor's mark before a template or a header is dropped: no compiler takes it."""
    (tmp_path / "include" / "kp").mkdir(parents=True)
    (tmp_path / "include" / "kp" / "a.cuh").write_text("\ufeffint b;\n")
    source = rendered(tmp_path, "\ufeff#include <kp/a.cuh>\nint a;")
    assert "\ufeff" not in source.text + source.headers[0].text


EVERY = "{% for i in range(99999) %}"
ENDLESS = {
    "loops": EVERY + "\n" + EVERY + "{% endfor %}{% endfor %}",
    "loops of nothing": EVERY + "\n{% for j in range(99999) if 0 %}{% endfor %}{% endfor %}",
    "macros": "{% macro m(n) %}\n{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}"
    "{% endmacro %}{{ m(60) }}",
    "recursion": "{% for x in range(40) recursive %}\n{{ loop(range(40)) if loop.depth < 9 }}"
    "{% endfor %}",
    "includes": "{% set n = (n or 0) + 1 %}\n{% if n < 60 %}{% include 't.cu.j2' %}"
    "{% include 't.cu.j2' %}{% endif %}",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_template_that_does_not_end(tmp_path, monkeypatch, name):
    """One that would run for hours is refused after as many rounds as no kernel needs."""
    monkeypatch.setattr(limits, "MOST_ROUNDS", 5000)
    with pytest.raises(RenderError, match="more than 5000 rounds of loops and calls") as error:
        rendered(tmp_path, ENDLESS[name], n=0)
    assert error.value.where.startswith("t.cu.j2:")


def test_loops_know_themselves(tmp_path):
    """A loop that counts has its length, its ends and its neighbours."""
    text = (
        "{% for i in [7, 8, 9] %}{{ i }} of {{ loop.length }}, {{ loop.last }}, "
        "{{ loop.nextitem | default('-') }};{% else %}none{% endfor %}"
        "{% for i in [] %}{{ i }}{% else %} none{% endfor %}"
        "{% for k, v in {'a': 1}.items() %} {{ k }}{{ v }}{% endfor %}"
    )
    expected = "7 of 3, False, 8;8 of 3, False, 9;9 of 3, True, -; none a1"
    assert rendered(tmp_path, text).text.splitlines()[-1] == expected


def test_mistake_in_a_macro(tmp_path):
    """A mistake within a macro is reported at the macro's line, not its caller's."""
    (tmp_path / "m.j2").write_text("{% macro m() %}\n\n{{ GONE }}{% endmacro %}")
    with pytest.raises(RenderError, match="'GONE' is undefined") as error:
        rendered(tmp_path, 'a\n{% from "m.j2" import m %}{{ m() }}')
    assert error.value.where == "m.j2:3"


def test_mistake_in_a_header(tmp_path):
    """A header that includes a missing one is reported at that line of the header."""
    (tmp_path / "include/kp").mkdir(parents=True)
    (tmp_path / "include/kp/ring.cuh").write_text("#pragma once\n#include <kp/rang.cuh>\n")
    with pytest.raises(RenderError, match=r"there is no header <kp/rang\.cuh>") as error:
        rendered(tmp_path, "#include <kp/ring.cuh>\n")
    assert error.value.where == "kp/ring.cuh:2"
    assert error.value.hint == "did you mean `kp/ring.cuh`?"


def test_linkage_in_a_header(tmp_path):
    """A header's variables are checked against the same rule, at its own line."""
    (tmp_path / "include/kp").mkdir(parents=True)
    (tmp_path / "include/kp/x.cuh").write_text("\nnamespace {\n__device__ int y;\n}\n")
    with pytest.raises(RenderError, match="`y` has internal linkage") as error:
        rendered(tmp_path, "#include <kp/x.cuh>\n")
    assert error.value.where == "kp/x.cuh:3"


def test_no_such_template():
    """A template that is not there is named, with the nearest that is."""
    with pytest.raises(RenderError, match="there is no such template") as error:
        render(small("small/plane.cu.j2"), TEMPLATES)
    assert (error.value.where, error.value.hint) == (
        "small/plane.cu.j2",
        "did you mean `small/plain.cu.j2`?",
    )


def test_no_such_folder():
    """Without the kernel's folder, the wrong root of templates was given, and it is named."""
    with pytest.raises(RenderError, match="there is no such template") as error:
        render(small("smaller/plain.cu.j2"), TEMPLATES)
    assert error.value.hint == f"the folder of templates is {TEMPLATES}; --templates names another"
