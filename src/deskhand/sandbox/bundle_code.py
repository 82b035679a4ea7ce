"""How the code of the supervisor comes into a sandbox: with the orders, so that nothing is found or
compiled there."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import marshal

_PACKAGE = "deskhand.sandbox"
_MODULES = ("kernel", "seccomp", "supervisor")
# Modules come from what was handed in, and only when they are asked for; all others are the
# standard library's.
_BOOT = """
import sys, marshal
from _frozen_importlib import ModuleSpec
with open({descriptor}, "rb", 0) as file: modules, orders = marshal.loads(file.read())
class Handed:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in modules: return ModuleSpec(name, Handed, is_package=modules[name] is None)
    @staticmethod
    def create_module(spec): return None
    @staticmethod
    def exec_module(module):
        code = modules[module.__name__]
        if code is not None: exec(marshal.loads(code) if isinstance(code, bytes) else code, module.__dict__)
sys.meta_path.insert(0, Handed)
from deskhand.sandbox.supervisor import main
main(orders)
"""  # noqa: E501


def make_boot_program(descriptor: int) -> str:
    """The program, in Python, that carries out what `bundle` wrote into the file behind
    `descriptor`."""
    return _BOOT.format(descriptor=descriptor)


def bundle_code(compiled: bool, orders: bytes) -> bytes:
    """The supervisor's code with its orders; `compiled` for an interpreter of our own version, else
    as text."""
    return marshal.dumps((_load_modules(compiled), orders), 2)


@functools.cache
def _load_modules(compiled: bool) -> dict[str, bytes | str | None]:
    """By name: bytecode, or text; None for a package, in which there is nothing but modules."""
    found: dict[str, bytes | str | None] = {_PACKAGE.partition(".")[0]: None, _PACKAGE: None}
    for name in (f"{_PACKAGE}.{each}" for each in _MODULES):
        spec = importlib.util.find_spec(name)
        loader = spec.loader if spec is not None else None
        if not isinstance(loader, importlib.abc.InspectLoader):
            raise ImportError(f"the code of {name} cannot be read")
        found[name] = marshal.dumps(loader.get_code(name)) if compiled else loader.get_source(name)
    return found
