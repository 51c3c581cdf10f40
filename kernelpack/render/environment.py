"""Strict Jinja over `templates/`: the door of jinja2.

An undefined name is an error; a template can neither draw random numbers nor reach Python.
Every line of template text carries a mark through the rendering, from which `lines.place` learns
where each line of the output was written: in a macro, in an include, after a block.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

from jinja2 import Environment, FunctionLoader, StrictUndefined, TemplateError
from jinja2.exceptions import TemplateNotFound, TemplateSyntaxError, UndefinedError
from jinja2.ext import Extension
from jinja2.lexer import TOKEN_DATA, Token, TokenStream
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kernelpack.errors import KernelpackError, RenderError
from kernelpack.formats.dtype import DType
from kernelpack.render.lines import mark
from kernelpack.spec.nearest import nearest

FAILURES = (
    TemplateError,
    KernelpackError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
)
"""What a template can raise: Jinja's errors, a filter's, and those of the expressions in it."""


def fill(name: str, templates: Path, values: Mapping[str, object]) -> str:
    """The template's text with `values` put in; every line carries its mark.

    Args:
        name: the template's path under `templates`.
        templates: the folder of all templates.
        values: the names that it may use.

    Raises:
        RenderError: at the template's line.

    """
    try:
        return _environment(templates).get_template(name).render(values)
    except FAILURES as error:
        raise _explain(error, name, templates, values) from error


@lru_cache(maxsize=8)
def _environment(templates: Path) -> Environment:
    environment = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(_reader(templates)),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        extensions=[_Marks, "jinja2.ext.do"],
    )
    del environment.globals["lipsum"], environment.filters["random"]
    environment.filters["c_type"] = lambda label: DType.parse(label).c_name
    return environment


def _reader(templates: Path) -> Callable[[str], tuple[str, str, Callable[[], bool]] | None]:
    """Reads a template; one that was read is taken again only if its text is still the same."""

    def read(name: str) -> tuple[str, str, Callable[[], bool]] | None:
        path = templates / name
        if PurePosixPath(name).is_absolute() or ".." in name.split("/") or not path.is_file():
            return None
        text = path.read_text(encoding="utf-8")
        return text, str(path), lambda: path.is_file() and path.read_text(encoding="utf-8") == text

    return read


class _Marks(Extension):
    """Puts a mark before every line of template text, and before text that follows a tag."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        for token in stream:
            if token.type == TOKEN_DATA:
                yield Token(token.lineno, TOKEN_DATA, _marked(token, stream.name or ""))
            else:
                yield token


def _marked(token: Token, name: str) -> str:
    lines = token.value.split("\n")
    return "\n".join(mark(name, token.lineno + i) + line for i, line in enumerate(lines))


def _explain(
    error: Exception, name: str, templates: Path, values: Mapping[str, object]
) -> RenderError:
    match error:
        case TemplateSyntaxError():
            where = f"{error.name or name}:{error.lineno}"
            return RenderError(error.message or "is not a template", where=where)
        case TemplateNotFound() if str(error) == name:
            return RenderError(
                "there is no such template", where=name, hint=_templates(name, templates)
            )
        case TemplateNotFound():
            what = f"there is no template `{error}`"
            hint = _templates(str(error), templates)
            return RenderError(what, where=_place(error, name, templates), hint=hint)
        case KernelpackError(what=what, hint=hint):
            return RenderError(what, where=_place(error, name, templates), hint=hint)
        case UndefinedError():
            hint = _meant(str(error), values)
            return RenderError(str(error), where=_place(error, name, templates), hint=hint)
    what = f"{type(error).__name__}: {error}"
    return RenderError(what, where=_place(error, name, templates))


def _templates(name: str, templates: Path) -> str:
    """The template that was probably meant; without the kernel's folder, the wrong root was."""
    if not (templates / name).parent.is_dir():
        return f"the folder of templates is {templates}; --templates names another"
    known = [str(path.relative_to(templates)) for path in sorted(templates.rglob("*.j2"))]
    return nearest(name, known) or f"templates: {', '.join(known)}"


def _meant(message: str, values: Mapping[str, object]) -> str:
    """Of `'TILE_K' is undefined`: the name that was probably meant."""
    _, quote, rest = message.partition("'")
    return nearest(rest.partition("'")[0], values) if quote else ""


def _place(error: Exception, name: str, templates: Path) -> str:
    """The innermost line of a template in the traceback, which Jinja rewrites to name templates."""
    place, trace = name, error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(templates):
            place = f"{path.relative_to(templates)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
