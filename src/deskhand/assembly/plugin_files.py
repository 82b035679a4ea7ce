"""Runs the file of a plugin, or its folder. Nothing is run that somebody else could have written,
and nothing from a cache."""

from __future__ import annotations

import os
import stat
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

from ..types.errors import ConfigError

INIT = "__init__.py"
PREFIX = "deskhand_plugin_"


def run_file(file: Path) -> ModuleType:
    """Run the file as a module; `__init__.py` as the package that its folder is. Raises
    ConfigError, and whatever it raises."""
    name = file.parent.name if file.name == INIT else file.stem
    module = ModuleType(PREFIX + name.replace("-", "_"))
    module.__file__ = str(file)
    if file.name == INIT:
        module.__path__ = [str(file.parent)]
        module.__package__ = module.__name__
        _check_permissions(file.parent.parent, file.parent.parent.stat())
        _Modules.of(module.__name__, file.parent)
    source = _read(file)
    sys.modules[module.__name__] = module  # dataclasses and get_type_hints look their module up
    try:
        exec(compile(source, str(file), "exec"), module.__dict__)
    except BaseException:
        for each in [each for each in sys.modules if each.split(".")[0] == module.__name__]:
            del sys.modules[each]
        raise
    return module


class _Modules:
    """Finds the further modules of a plugin's folder, read as its first one is."""

    def __init__(self, package: str, folder: Path) -> None:
        self._package = package
        self._folder = folder

    @classmethod
    def of(cls, package: str, folder: Path) -> None:
        """Have them found; those of an earlier run are forgotten."""
        sys.meta_path[:] = [
            each
            for each in sys.meta_path
            if not (isinstance(each, _Modules) and each._package == package)
        ]
        for each in [each for each in sys.modules if each.startswith(f"{package}.")]:
            del sys.modules[each]
        sys.meta_path.insert(0, cls(package, folder))

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(f"{self._package}."):
            return None
        place = self._folder.joinpath(*name.split(".")[1:])
        for file, is_package in ((place / INIT, True), (place.with_suffix(".py"), False)):
            if os.path.lexists(file):
                return spec_from_loader(name, _Loader(file), is_package=is_package)
        return None


class _Loader(Loader):
    def __init__(self, file: Path) -> None:
        self._file = file

    def create_module(self, spec: ModuleSpec) -> None:
        """The usual one."""

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._file)
        exec(compile(_read(self._file), str(self._file), "exec"), module.__dict__)


def _read(file: Path) -> bytes:
    """The source, unless somebody else could have written it. Raises ConfigError."""
    _check_permissions(file.parent, os.stat(file.parent))  # noqa: PTH116 -- beside fstat, the same kind of answer
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        reason = (
            "it is a link; replace it with the file itself"
            if file.is_symlink()
            else str(error.strerror)
        )
        raise ConfigError(reason) from error
    with os.fdopen(fd, "rb") as opened:
        _check_permissions(file, os.fstat(fd))
        return opened.read()


def _check_permissions(path: Path, found: os.stat_result) -> None:
    what = "the folder" if stat.S_ISDIR(found.st_mode) else "it"
    if found.st_uid != os.getuid():
        raise ConfigError(
            f"{what} belongs to another user; if you trust it, run: sudo chown $(id -u) {path}"
        )
    if found.st_mode & 0o022:
        raise ConfigError(
            f"others can write {what if what == 'it' else 'its folder'}; run: chmod go-w {path}"
        )


def describe_error(error: BaseException, place: str) -> str:
    """The error in a sentence, with the line of the plugin where it was raised."""
    inside = Path(place).parent if place.endswith(INIT) else Path(place)
    lines = [
        f"line {at.lineno} of {Path(at.filename).name}"
        for at in traceback.extract_tb(error.__traceback__)
        if Path(at.filename).is_relative_to(inside)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append(f"line {error.lineno} of {Path(error.filename).name}")
    where = f" ({lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{where}"
