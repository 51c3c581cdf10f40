# ruff: noqa: INP001 - a script, not a package
"""Write the files that follow from the code: `python docs/generate.py`.

docs/reference/cli.md comes from the commands; rules.md from the emulator's table of rules;
manifest.md and manifest.schema.json from the manifest's
models, their words and the expression language; the C++ loader's targets.hpp from the
rows of `spec.arch`. Tests check that each is what this file writes.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from kernelpack.cli import main, settings
from kernelpack.emulator import rules
from kernelpack.manifest import model, parts, words
from kernelpack.manifest.names import TARGET_CONSTANTS, TEMPLATE_CONSTANTS
from kernelpack.manifest.schema import json_schema
from kernelpack.spec import arch, expr
from kernelpack.spec.variant import DEVICE_SIZES

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
TARGETS_HPP = ROOT / "kernelpack" / "include" / "kernelpack" / "detail" / "targets.hpp"
WRITTEN = "<!-- Written by docs/generate.py: change the code it is about, then run it. -->"


def cli() -> str:
    """docs/reference/cli.md: every verb with its words and options."""
    parts = [
        "# The command line",
        WRITTEN,
        _sentences(main.__doc__),
        _sentences(_COMPLETION.format(main.COMPLETION)),
        _table("verb", "does", {f"[`{n}`](#kernelpack-{n})": d for n, d in main.VERBS.items()}),
        "Variables, all of them (`kernelpack doctor` prints what they say):",
        cleandoc(settings.__doc__ or "").split("\n\n", 1)[1],
        *(part for name in main.VERBS for part in _verb(name, main.verb(name))),
    ]
    return "\n\n".join(parts) + "\n"


def manifest() -> str:
    """docs/reference/manifest.md: every key of a manifest, and the expression language."""
    page = [
        "# Manifests",
        WRITTEN,
        _ABOUT_MANIFESTS,
        "## Keys",
        _keys(model.Manifest),
        *(part for title, kind in _PARTS.items() for part in _part(title, kind)),
        "## Words",
        _table("of", "words", {key: _codes(known) for key, known in _WORDS.items()}),
        "## Expressions",
        _below_first_line(expr.__doc__),
        _NAMES.format(functions=_codes(expr.FUNCTIONS), sizes=_codes(DEVICE_SIZES)),
        _CONSTANTS.format(always=_codes(TARGET_CONSTANTS), templates=_codes(TEMPLATE_CONSTANTS)),
    ]
    return "\n\n".join(page) + "\n"


def targets() -> str:
    """The C++ loader's table of targets: where each runs, its parameters begin, its limits."""
    rows = "".join(f"    {_target(name, row)},\n" for name, row in arch.TARGETS.items())
    return _TARGETS_HPP.format(
        rows=rows,
        most_capabilities=max(len(row.capabilities) for row in arch.TARGETS.values()),
        most_cluster=arch.MOST_CTAS,
        portable_cluster=arch.PORTABLE_CLUSTER,
    )


def _target(name: str, row: arch.Target) -> str:
    limits = row.limits
    sides = ", ".join("{" + ", ".join(map(str, each)) + "}" for each in (limits.grid, limits.block))
    numbers = f"{limits.threads}, {limits.cluster}, {limits.shared_bytes}"
    runs_on = ", ".join(f"{{{major}, {minor}}}" for major, minor in row.capabilities)
    known = f"{{{len(row.capabilities)}, {{{runs_on}}}}}"
    return f'{{"{name}", {known}, {row.parameter_base:#x}, {{{sides}, {numbers}}}}}'


def schema() -> str:
    """The JSON Schema of a manifest."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def found_rules() -> str:
    """docs/reference/rules.md: every rule of the emulator."""
    page = ["# Rules of the emulator", WRITTEN, _ABOUT_RULES, *map(_of_rule, rules.names())]
    return "\n\n".join(page) + "\n"


PAGES = {
    REFERENCE / "cli.md": cli,
    REFERENCE / "manifest.md": manifest,
    REFERENCE / "manifest.schema.json": schema,
    REFERENCE / "rules.md": found_rules,
    TARGETS_HPP: targets,
}

_TARGETS_HPP = """// Targets, and what a launch may ask for on each.
// Written by docs/generate.py from kernelpack/spec/arch.py: change that, then run it.
#pragma once

#include <cstdint>
#include <string_view>

namespace kernelpack::detail {{

/// Counts along x, y and z, CTAs of a cluster, and bytes of a block's shared memory.
struct Limits {{
  std::int64_t grid[3], block[3], threads, cluster, shared_bytes;
}};

/// Compute capabilities, major and minor.
struct Capabilities {{
  int count, of[{most_capabilities}][2];
}};

struct Target {{
  std::string_view name;
  Capabilities capabilities;     // of the devices that its machine code runs on
  std::uint64_t parameter_base;  // where a kernel's parameters begin in its constant bank
  Limits limits;
}};

// clang-format off
constexpr Target kTargets[] = {{
{rows}}};
// clang-format on

constexpr std::int64_t kMostCluster = {most_cluster};  // CTAs, of any target
// CTAs that every device takes; for more a function must allow it.
constexpr std::int64_t kPortableCluster = {portable_cluster};

}}  // namespace kernelpack::detail
"""

_ABOUT_RULES = """Names that findings have in brackets; `kernelpack emulate --rules` prints them.
Sections are those of the PTX ISA 9.1. `error`: wrong on every machine. `warn`: wrong by the manual,
mostly without effect. `strict`: production kernels do it on hardware that lets it pass."""

_COMPLETION = """A shell completes verbs and options after `{}` (bash; for others: `zsh_source`,
`fish_source`); the line belongs into `~/.bashrc`. It also completes the names of kernels (`run
lora<TAB>`), and the words of `-k` that the bundles and manifests of the line have (`build
manifests/lora_shrink_qkv.yaml -k dtype=<TAB>`)."""
_ABOUT_MANIFESTS = """A manifest is one YAML file a kernel, `manifests/<kernel>.yaml`. Its JSON
Schema, for editors, is [manifest.schema.json](manifest.schema.json); a guided example is
[first-kernel.md](../guides/first-kernel.md)."""
_NAMES = "Functions: {functions}. Sizes that the device gives: {sizes}."
_CONSTANTS = "Constants that are always there: {always}; templates see {templates} too."
_PARTS = {
    "`for`: a family's block": model.Block,
    "`where`, `serves`: claims": parts.Claim,
    "`numbers`": parts.NumberPart,
    "`arguments`": parts.ArgumentPart,
    "`params`: one that is a map": parts.MapParamPart,
    "`params`: one that is a pointer": parts.PointerParamPart,
    "`params`: one that is a scalar": parts.ScalarParamPart,
    "`map`": parts.MapPart,
    "`launch`": parts.LaunchPart,
    "`budget`": parts.BudgetPart,
}
_WORDS: dict[str, Iterable[str]] = {
    "targets": words.TARGETS,
    "`for`": words.FAMILIES,
    "`dtype`, `scalar`": words.DTYPES,
    "`element`": words.ELEMENTS,
    "`access`": words.ACCESSES,
    "`swizzle`": words.SWIZZLES,
    "`interleave`": words.INTERLEAVES,
    "`promotion`": words.PROMOTIONS,
    "`fill`": words.FILLS,
}


# --- the rules ---


def _of_rule(name: str) -> str:
    rows = [
        f"| {row.level.name.lower()} | {row.section} | {row.what} | {row.mend} |"
        for row in rules.of_name(name)
    ]
    return "\n".join(
        [f"## `{name}`", "", "| level | section | wrong | right |", "|---|---|---|---|", *rows]
    )


# --- the command line ---


def _verb(name: str, command: click.Command) -> Iterator[str]:
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option)]
    usage = " ".join(["kernelpack", name, *map(_argument, arguments), "[OPTIONS]"])
    yield f"## kernelpack {name}"
    yield f"```console\n{usage}\n```"
    yield _sentences(command.help)
    yield _table("option", "", {_option(option): _meaning(option) for option in options})


def _argument(argument: click.Argument) -> str:
    return argument.metavar or str(argument.name).upper()


def _option(option: click.Option) -> str:
    value = "" if option.is_flag else f" {option.metavar or _value(option.type)}"
    return ", ".join(f"`{name}{value}`" for name in option.opts)


def _value(kind: object) -> str:
    match kind:
        case click.Choice(choices=known):
            return "\\|".join(map(str, known))
        case click.Path():
            return "PATH"
        case _:
            return "N"


def _meaning(option: click.Option) -> str:
    shown = f" Default: `{option.default}`." if option.show_default else ""
    return f"{option.help}{shown}"


# --- manifests ---


def _part(title: str, kind: type[Any]) -> Iterator[str]:
    yield f"### {title}"
    yield _sentences(kind.__doc__)
    yield _keys(kind)


def _keys(kind: type[Any]) -> str:
    """Each key, with what it is, what it means, and whether it may be left out."""
    properties = kind.model_json_schema()["properties"]
    lines = ["| key | is | means |", "|---|---|---|"]
    for name, field in zip(kind.keys(), kind.model_fields.values(), strict=True):
        meaning = f"{field.description or ''} {_default(field)}".strip()
        lines.append(f"| `{name}` | {_is(properties[name])} | {meaning} |")
    return "\n".join(lines)


def _is(schema: Mapping[str, Any]) -> str:  # noqa: C901 - a table
    """What a value is, as YAML would have it, from its JSON Schema."""
    match schema:
        case {"enum": _}:
            return "word"
        case {"type": ["integer", "string"]}:
            return "integer or word" if "pattern" in schema else "expression"
        case {"prefixItems": [first, *_]}:
            return f"[x, y, z], each {_is(first)}"
        case {"type": ["number", "string"]}:
            return "number"
        case {"anyOf": [first, {"type": "null"}]}:
            return _is(first)
        case {"anyOf": [{"type": "string"}, _]}:
            return "string or mapping"
        case {"type": "array", "items": items}:
            return f"[{_is(items)}, …]"
        case {"type": "object", "propertyNames": {"enum": _}}:
            return "{family: mapping}"
        case {"type": "object", "additionalProperties": dict(value)}:
            return f"{{name: {_is(value)}}}"
        case {"type": "object", "patternProperties": values}:
            return f"{{name: {_is(next(iter(values.values())))}}}"
        case {"type": str(kind)}:
            return "name" if "pattern" in schema else kind
        case _:
            return "mapping"


def _default(field: Any) -> str:  # noqa: ANN401 - pydantic's
    if field.is_required():
        return ""
    value = field.get_default(call_default_factory=True)
    if field.annotation == parts.Real | None:
        return "May be left out."
    if value is parts.ELSEWHERE:
        return "Here or in a family's block."
    if isinstance(value, parts.Part):
        return "May be left out."
    label = next((word for known in _ENUMS for word, v in known.items() if v is value), None)
    if label or isinstance(value, expr.Expr | bool | int):
        return f"Default: `{label or str(value).lower()}`."
    return "May be left out." if not value else f"Default: `[{', '.join(map(str, value))}]`."


_ENUMS: tuple[Mapping[str, object], ...] = (
    words.ACCESSES,
    words.SWIZZLES,
    words.INTERLEAVES,
    words.PROMOTIONS,
    words.FILLS,
)


# --- text ---


def _table(left: str, right: str, rows: Mapping[str, str]) -> str:
    lines = [f"| {left} | {right} |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows.items())]
    return "\n".join(lines)


def _sentences(text: str | None) -> str:
    """A docstring with each paragraph on one line."""
    paragraphs = cleandoc(text or "").split("\n\n")
    return "\n\n".join(re.sub(r"\s*\n\s*", " ", paragraph) for paragraph in paragraphs)


def _below_first_line(text: str | None) -> str:
    return cleandoc(text or "").split("\n\n", 1)[1]


def _codes(known: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in known)


if __name__ == "__main__":
    for path, page in PAGES.items():
        path.write_text(page())
