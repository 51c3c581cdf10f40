"""One target with one value of each axis: its constants, worked out only when asked for."""

from collections.abc import Iterator, Mapping

from kernelpack.errors import ExpressionError, ManifestError
from kernelpack.manifest.family import FamilyManifest
from kernelpack.spec.arch import Arch
from kernelpack.spec.expr import evaluate, symbol
from kernelpack.spec.variant import Axis


class Combination(Mapping[str, int]):
    """The constants of one combination by name, as expressions see them; words are symbols.

    A `let` is evaluated when it is first asked for, so that a combination which `where` excludes
    needs none of those that have no meaning for it.
    """

    def __init__(self, manifest: FamilyManifest, arch: Arch, axes: tuple[Axis, ...]) -> None:
        self.manifest, self.arch, self.axes = manifest, arch, axes
        self._words = dict((*_target_constants(arch), *axes))
        self._values = {name: _number(value) for name, value in self._words.items()}

    def __getitem__(self, name: str) -> int:
        if name not in self._values:
            self._values[name] = self._let(name)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self.manifest.let

    def __iter__(self) -> Iterator[str]:
        yield from self._words
        yield from self.manifest.let

    def __len__(self) -> int:
        return len(self._words) + len(self.manifest.let)

    def __str__(self) -> str:
        axes = "".join(f", {name}={value}" for name, value in self.axes)
        return f"arch={self.arch}{axes}"

    @property
    def constants(self) -> tuple[Axis, ...]:
        """A template's variables: the target's constants, the axes, `let`; words stay words."""
        return tuple((name, self._words.get(name, self[name])) for name in self)

    def _let(self, name: str) -> int:
        try:
            return evaluate(self.manifest.let[name], self)
        except ExpressionError as error:
            where = self.manifest.at("let", name)
            what = f"`{name}` has no value for {self}: {error.what}"
            raise ManifestError(what, where=where, hint=error.hint) from error


def _target_constants(arch: Arch) -> tuple[Axis, ...]:
    return (
        ("ARCH", arch.name),
        ("FAMILY", arch.family),
        ("LIMIT_SHARED", arch.limits.shared_bytes),
        ("LIMIT_REGISTERS", arch.limits.registers),
    )


def _number(value: int | str) -> int:
    return value if isinstance(value, int) else symbol(value)
