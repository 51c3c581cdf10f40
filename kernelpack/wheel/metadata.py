"""pip's data of a wheel: its names, requirements, and the entry point that announces it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernelpack import __version__
from kernelpack.bundle.discover import GROUP
from kernelpack.errors import KernelpackError
from kernelpack.kernels.registry import GROUP as KERNELS

TAG = "py3-none-any"
_PROJECT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VERSION = re.compile(
    r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """A wheel's metadata.

    Attributes:
        name: of the project, such as `kernelpack-cubins-sm100`.
        version: as PEP 440 writes it.
        summary: one line.
        requires: what it asks for, such as `kernelpack>=0.1.0,<0.2`.
        licence: SPDX expression; empty where none is stated.
        announces: the package of bundles that it installs; empty: another wheel announces it.
        kernels: the stems of the kernels whose sources it installs.

    Raises:
        KernelpackError: the name or the version is not valid.

    """

    name: str
    version: str
    summary: str
    requires: str
    licence: str = ""
    announces: str = ""
    kernels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _PROJECT.fullmatch(self.name):
            hint = "lower-case words of letters and digits, joined by `-`"
            raise KernelpackError(f"`{self.name}` is not a valid wheel name", hint=hint)
        if not _VERSION.fullmatch(self.version):
            hint = "such as 0.1.0, 1.2.post1, 1.2+cu13 (PEP 440)"
            raise KernelpackError(f"`{self.version}` is no version of a wheel", hint=hint)

    @property
    def stem(self) -> str:
        """Name and version, as file names have them."""
        return f"{package(self.name)}-{self.version}"

    @property
    def info(self) -> str:
        """The folder of the metadata."""
        return f"{self.stem}.dist-info"

    @property
    def filename(self) -> str:
        """The wheel's file."""
        return f"{self.stem}-{TAG}.whl"

    def files(self) -> Mapping[str, bytes]:
        """The metadata's files, by path in the wheel."""
        texts = {"METADATA": self._metadata(), "WHEEL": _WHEEL}
        if self.announces:
            texts["entry_points.txt"] = f"[{GROUP}]\n{self.announces} = {self.announces}\n"
        if self.kernels:
            named = package(self.name)
            lines = "".join(f"{stem} = {named}.{stem}.{stem}\n" for stem in self.kernels)
            texts["entry_points.txt"] = f"[{KERNELS}]\n{lines}"
        return {f"{self.info}/{name}": text.encode() for name, text in texts.items()}

    def _metadata(self) -> str:
        fields = {
            "Metadata-Version": "2.4" if self.licence else "2.1",
            "Name": self.name,
            "Version": self.version,
            "Summary": self.summary,
            "License-Expression": self.licence,
            "Requires-Dist": self.requires,
        }
        return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def package(name: str) -> str:
    """The package that a project of kernels installs."""
    return name.replace("-", "_")


_WHEEL = f"""Wheel-Version: 1.0
Generator: kernelpack ({__version__})
Root-Is-Purelib: true
Tag: {TAG}
"""
