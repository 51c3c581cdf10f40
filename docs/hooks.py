# ruff: noqa: INP001 - a script, not a package
"""The site's hooks for mkdocs.yml: in the order of a build.

Pages are written for a reader of the repository. README.md lies above docs/ and becomes the home
page; a source that a page links to becomes a page; the API reference is made of docstrings.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

from kernelpack import errors, kv, ops, oracle

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ABOVE = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md"}
"""Pages of the site whose text lies above docs/."""
API = "reference/api.md"
LANGUAGES = {".j2": "cuda", ".cuh": "cuda", ".hpp": "cpp", ".py": "python", ".yaml": "yaml"}
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(?=[)#])")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
BEFORE_LIST = re.compile(r"^(?![-*] |\d+\. |\s)(.+\n)(?=(?:[-*]|\d+\.) )", re.MULTILINE)
"""A line above a list: Python-Markdown, unlike others, asks for an empty one between them."""

SECTIONS = {
    "Guides": ("guides", ["first-kernel", "own-kernel", "ladder", "serving", "cpp"]),
    "Reference": ("reference", ["api", "cli", "manifest"]),
    "Inside": ("", ["architecture", "reading"]),
    "Notes": ("notes", ["index"]),
    "Decisions": ("adr", ["README"]),
}
"""A section's folder, and the pages that come first in it; the others follow by name."""


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """Put every page in the navigation."""
    sections = [{title: _pages(*of)} for title, of in SECTIONS.items()]
    config.nav = [{"kernelpack": "index.md"}, {"Contributing": "contributing.md"}, *sections]
    return config


def _pages(folder: str, first: list[str]) -> list[str]:
    found = {path.stem for path in (DOCS / folder).glob("*.md")}
    names = [*first, *sorted(found - set(first))]
    return [str(PurePosixPath(folder, f"{name}.md")) for name in names]


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the pages that do not lie in docs/."""
    for page, above in ABOVE.items():
        files.append(File.generated(config, page, content=(ROOT / above).read_text()))
    files.append(File.generated(config, API, content=api()))
    files.append(File.generated(config, "notes/index.md", content=contents(DOCS / "notes")))
    pages = [file for file in files if file.is_documentation_page()]
    linked = {path for page in pages for path in _links(page.src_uri, page.content_string)}
    for path in sorted(linked):
        if path.is_file() and _page_of(path).startswith("source/"):
            files.append(File.generated(config, _page_of(path), content=source(path)))
    return files


def on_page_markdown(markdown: str, page: "Page", **_: object) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    here = page.file.src_uri
    parts = FENCE.split(markdown)  # every second one is code
    parts[::2] = (BEFORE_LIST.sub(r"\1\n", text) for text in parts[::2])
    return LINK.sub(lambda link: _relative(_target(here, link[1]), here), "".join(parts))


def source(path: Path) -> str:
    """The page of a source."""
    language = LANGUAGES.get(path.suffix, "text")
    return f"# {path.relative_to(ROOT)}\n\n````` {language}\n{path.read_text()}\n`````\n"


def contents(folder: Path) -> str:
    """The page of a folder of docs/."""
    titles = {path.name: path.read_text().partition("\n")[0] for path in folder.glob("*.md")}
    lines = [f"- [{title.removeprefix('# ')}]({name})" for name, title in sorted(titles.items())]
    return f"# {folder.name.capitalize()}\n\n" + "\n".join(lines) + "\n"


def api() -> str:
    """docs/reference/api.md: the public names, each by its docstring."""
    parts = ["# Python API", *_section("kernelpack", ["load.load.load", "load.library.Library"])]
    parts += _section("kernelpack.ops", [name for name in ops.__all__ if name not in ops.OPS])
    parts += [f"::: kernelpack.ops.{name}.{name}" for name in ops.OPS]
    parts += _section("kernelpack.kv", kv.__all__)
    parts += _section("kernelpack.oracle", oracle.__all__)
    parts += _section("kernelpack.errors", sorted(_errors()))
    return "\n\n".join(parts) + "\n"


def _section(module: str, names: list[str]) -> list[str]:
    return [f"## {module}", *(f"::: {module}.{name}" for name in names)]


def _errors() -> Iterator[str]:
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, errors.KernelpackError):
            yield name


def _links(page: str, text: str) -> Iterator[Path]:
    """The files of the repository that a page links to."""
    return (_target(page, link) for link in LINK.findall(text))


def _target(page: str, link: str) -> Path:
    """The file that a link of a page names."""
    start = ROOT / ABOVE[page] if page in ABOVE else DOCS / page
    return Path(os.path.normpath(start.parent / link))


def _page_of(path: Path) -> str:
    """The page of the site that shows a file."""
    for page, above in ABOVE.items():
        if path == ROOT / above:
            return page
    if path.is_dir() and path.is_relative_to(DOCS):
        return f"{path.relative_to(DOCS)}/index.md"
    if path.is_relative_to(DOCS) and path.suffix != ".py":
        return str(path.relative_to(DOCS))
    return f"source/{path.relative_to(ROOT)}.md" if path.is_relative_to(ROOT) else str(path)


def _relative(path: Path, page: str) -> str:
    """A link from a page to the page of a file."""
    return os.path.relpath(_page_of(path), PurePosixPath(page).parent)
