"""Strict Jinja over `templates/`: the door of jinja2.

An undefined name is an error; a template can neither draw random numbers nor reach Python.
Every line of template text carries a mark through the rendering, from which `lines.place` learns
where each line of the output was written: in a macro, in an include, after a block.
"""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, cast

from jinja2 import FunctionLoader, StrictUndefined, Template, TemplateError, nodes
from jinja2.exceptions import TemplateNotFound, TemplateSyntaxError, UndefinedError
from jinja2.ext import Extension
from jinja2.lexer import TOKEN_DATA, Token, TokenStream
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kernelpack.errors import KernelpackError, RenderError
from kernelpack.formats.dtype import DType
from kernelpack.render import limits
from kernelpack.render.files import read_text
from kernelpack.render.lines import mark
from kernelpack.render.templates import Templates
from kernelpack.spec.artifact import Part
from kernelpack.spec.nearest import nearest

FAILURES = (
    TemplateError,
    KernelpackError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
    RecursionError,
)
"""Errors of a template: Jinja's, a filter's, and those of its expressions."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A rendered template: its text, and every template read for it, by path."""

    text: str
    parts: tuple[Part, ...]


def fill(name: str, templates: Templates, values: Mapping[str, object]) -> Filled:
    """The template's text with `values` put in; every line carries its mark.

    Args:
        name: the template's path under `templates`.
        templates: where all of them are.
        values: the names that it may use.

    Raises:
        RenderError: at the template's line.

    """
    environment, read = _environment(templates), set[str]()
    token, rounds = _READ.set(read), limits.left.set([limits.MOST_ROUNDS])
    try:
        text = environment.get_template(name).render(values)
    except FAILURES as error:
        raise _explain(error, name, templates, values) from error
    finally:
        _READ.reset(token)
        limits.left.reset(rounds)
    parts = (Part(path=part, text=environment.texts[part]) for part in sorted(read))
    return Filled(text=text, parts=tuple(parts))


_READ: ContextVar[set[str]] = ContextVar("read")
"""The templates that the one being filled has asked for."""


class _Environment(ImmutableSandboxedEnvironment):
    """Templates of a folder; notes which are asked for, whether they were read before or not."""

    texts: dict[str, str]
    """The text of each as it was read last."""
    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def call_binop(
        self,
        context: Context,
        operator: str,
        left: Any,  # noqa: ANN401 - a template's values
        right: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Text beyond any machine's memory is refused before it is made."""
        limits.check_binop(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: Any, /, *args: Any, **given: Any) -> Any:  # noqa: ANN401
        """Likewise of a text's methods."""
        method = getattr(obj, "__wrapped__", obj)
        if isinstance(subject := getattr(method, "__self__", None), str):
            limits.check_call(method.__name__, subject, *args, **given)
        return super().call(context, obj, *args, **given)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """A template whose rounds count."""
        parsed = super()._parse(source, name, filename)
        return cast("nodes.Template", limits.Bounded().visit(parsed))

    def get_template(self, *args: Any, **given: Any) -> Template:  # noqa: ANN401 - as jinja2 has it
        """One by name: of `fill`, an include, an import or a parent."""
        return _noted(super().get_template(*args, **given))

    def select_template(self, *args: Any, **given: Any) -> Template:  # noqa: ANN401 - likewise
        """The first of several that is there."""
        return _noted(super().select_template(*args, **given))


def _noted(template: Template) -> Template:
    _READ.get().add(template.name or "")
    return template


@lru_cache(maxsize=8)
def _environment(templates: Templates) -> _Environment:
    texts: dict[str, str] = {}
    environment = _Environment(
        loader=FunctionLoader(_reader(templates, texts)),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        extensions=[_Marks, "jinja2.ext.do"],
    )
    environment.texts = texts
    del environment.globals["lipsum"], environment.filters["random"]
    environment.filters |= {name: limits.bounded(environment.filters[name]) for name in limits.GROW}
    environment.filters |= limits.FILTERS
    environment.filters["c_type"] = lambda label: DType.parse(label).c_name
    return environment


def _reader(
    templates: Templates, texts: dict[str, str]
) -> Callable[[str], tuple[str, str, Callable[[], bool]] | None]:
    """Reads a template; one that was read is taken again only if its text is still the same."""

    def read(name: str) -> tuple[str, str, Callable[[], bool]] | None:
        path = templates.find(name)
        if PurePosixPath(name).is_absolute() or ".." in name.split("/") or not path.is_file():
            return None
        text = texts[name] = read_text(path, name)
        return text, str(path), lambda: path.is_file() and read_text(path, name) == text

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
    error: Exception, name: str, templates: Templates, values: Mapping[str, object]
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
        case RenderError(where=where) if where:
            return error
        case KernelpackError(what=what, hint=hint):
            return RenderError(what, where=_place(error, name, templates), hint=hint)
        case UndefinedError():
            hint = _meant(str(error), values)
            return RenderError(str(error), where=_place(error, name, templates), hint=hint)
    what = f"{type(error).__name__}: {error}"
    return RenderError(what, where=_place(error, name, templates))


def _templates(name: str, templates: Templates) -> str:
    """The template that was probably meant; without the kernel's folder, the wrong root was."""
    if not templates.find(name).parent.is_dir():
        return f"the folder of templates is {templates.shared}; --templates names another"
    known = list(templates.names())
    beside = [each for each in known if Path(each).parent == Path(name).parent]
    listed = f"templates: {', '.join(beside)}" if beside else f"it would be {templates.find(name)}"
    return nearest(name, known) or listed


def _meant(message: str, values: Mapping[str, object]) -> str:
    """Of `'TILE_K' is undefined`: the name that was probably meant."""
    _, quote, rest = message.partition("'")
    return nearest(rest.partition("'")[0], values) if quote else ""


def _place(error: Exception, name: str, templates: Templates) -> str:
    """The innermost line of a template in the traceback, which Jinja rewrites to name templates."""
    place, trace = name, error.__traceback__
    while trace is not None:
        if found := templates.named(Path(trace.tb_frame.f_code.co_filename)):
            place = f"{found}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
