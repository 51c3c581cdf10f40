"""Something wrong with a bundle, or worth a warning."""

from dataclasses import dataclass

from kernelpack.errors import KernelpackError


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Where it is, what it is, what would be right."""

    where: str
    what: str
    hint: str = ""
    is_error: bool = True

    def __str__(self) -> str:
        head = f"{self.where}: {'' if self.is_error else 'warning: '}{self.what}"
        return f"{head}\nhint: {self.hint}" if self.hint else head


def finding(error: KernelpackError, where: str = "") -> Finding:
    """An error as a finding; `where` takes the place of the error's own."""
    return Finding(where=where or error.where, what=error.what, hint=error.hint)
