"""Where the meaning of a kernel is: what a package announces, or the file in a kernel's folder."""

import sys
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

from kernelpack.errors import OracleError
from kernelpack.installed import PROJECT, owner
from kernelpack.kernels import oracle
from kernelpack.kernels.definition import Definition
from kernelpack.kernels.folder import Folder
from kernelpack.kernels.guarded import Guarded, is_asked
from kernelpack.kernels.made_of import version


@dataclass(frozen=True, slots=True)
class Announced:
    """A kernel of an installed package: `module:DEFINITION`, or a module that is an oracle."""

    point: EntryPoint

    def __str__(self) -> str:
        return f"`{self.point.value}`, announced by {owner(self.point)}"

    @property
    def folder(self) -> Folder | None:
        """The folder of a kernel whose manifest lies beside its oracle; imports nothing."""
        if not self.point.dist:
            return None
        path = Path(str(self.point.dist.locate_file(self.point.module.replace(".", "/"))))
        folder = Folder(path.parent)
        return folder if path.name == folder.stem and folder.is_kernel else None

    def load(self) -> Definition:
        """Import it.

        Raises:
            OracleError: it is not there, or says nothing of this kernel.

        """
        try:
            found = self.point.load()
        except (ImportError, AttributeError) as error:
            hint = "install the package again"
            raise OracleError(f"is not there: {error}", where=str(self), hint=hint) from error
        except BaseException as error:
            if is_asked(error):
                raise
            what = f"cannot be imported: {type(error).__name__}: {error}"
            raise OracleError(what, where=str(self)) from error
        if isinstance(found, ModuleType):
            return _of_module(self.point.name, found)
        if not isinstance(found, Definition) or found.stem != self.point.name:
            raise OracleError(f"is not a definition of `{self.point.name}`", where=str(self))
        is_ours = owner(self.point) == PROJECT  # whose code is part of every key
        return found if is_ours else replace(found, version=_version(self.point.module))


@dataclass(frozen=True, slots=True)
class InFolder:
    """A kernel of one's own."""

    folder: Folder

    def __str__(self) -> str:
        return str(self.folder.oracle)

    def load(self) -> Definition:
        """Run its file.

        Raises:
            OracleError: there is none, it is not Python, or it raises; at the file's line.

        """
        path = self.folder.oracle
        if not path.is_file():
            what = f"there is no oracle, which says what `{self.folder.stem}` computes"
            raise OracleError(what, where=str(path), hint=_near(self.folder))
        module = ModuleType(f"kernelpack_oracle_{self.folder.stem}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # dataclasses and pickle look there
        text = path.read_bytes()
        Guarded(str(path)).call(exec, _compiled(text, path), module.__dict__)
        return oracle.definition(self.folder.stem, vars(module), str(path), version(path, text))


Place = Announced | InFolder


def _compiled(text: bytes, path: Path) -> object:
    try:
        return compile(text, str(path), "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{path}:{line}" if line else str(path)
        what = f"is not Python: {getattr(error, 'msg', error)}"
        raise OracleError(what, where=where) from error


def _near(folder: Folder) -> str:
    """The Python files that are there, if any."""
    others = sorted(path.name for path in folder.path.glob("*.py"))
    call = f"an oracle is called {folder.oracle.name}"
    return f"{call}; the folder has {', '.join(others)}" if others else call


def _of_module(stem: str, module: ModuleType) -> Definition:
    """The definition of an installed module that is an oracle."""
    origin = str(module.__file__)
    return oracle.definition(stem, vars(module), origin, _version(module.__name__))


def _version(module: str) -> str:
    """The digest of what an imported module is made of."""
    found = sys.modules[module]
    path = Path(found.__file__) if found.__file__ else None
    return version(path, path.read_bytes(), found.__package__ or "") if path else ""
