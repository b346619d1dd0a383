"""Deferred imports of packages of which other libraries need one module only.

LangGraph wants one protocol of its server's SDK, and LangChain's tracers one type of the REST API
of LangSmith. Python runs a package's ``__init__`` before any of its modules, and these two import
several hundred, with a pydantic model for every answer a server may give: a third of the time
until ``homer ask`` begins. Deferred, they are imported in full when a name of the package itself is
used, as when traces are sent to LangSmith.

``importlib.util.LazyLoader`` does this for modules. A package it would import at once, since the
import of a module in it asks the package for its path.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

PACKAGES = frozenset({"langgraph_sdk", "langsmith.types"})

_lock = threading.RLock()


def defer_packages() -> None:
    """Import ``PACKAGES`` as late as possible from here on; imported ones stay.

    One that is not there any more, or is no package of source files, is left to Python.
    """
    if not any(isinstance(finder, _LazyFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _LazyFinder())


class _LazyFinder:
    """Finds ``PACKAGES`` where Python would, and nothing else."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in PACKAGES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _DeferredLoader(spec.loader.name, spec.loader.path)
        return spec


class _DeferredLoader(SourceFileLoader):
    """Leaves a package empty until a name in it is used."""

    wanted = False

    def exec_module(self, module: ModuleType) -> None:
        """Run ``__init__`` if a name of it is needed."""
        if self.wanted or not self.is_package(module.__name__):
            super().exec_module(module)
        else:
            module.__class__ = _DeferredPackage


class _DeferredPackage(ModuleType):
    """A package whose ``__init__`` runs when a name is used that no import has set."""

    def __getattr__(self, name: str) -> Any:
        with _lock:
            loader = self.__loader__
            # It may ask for names of the package itself: those it has not set yet are missing.
            if isinstance(loader, _DeferredLoader) and not loader.wanted:
                _import_now(self, loader)
        return ModuleType.__getattribute__(self, name)


def _import_now(package: ModuleType, loader: _DeferredLoader) -> None:
    loader.wanted = True
    try:
        loader.exec_module(package)
    except BaseException:
        loader.wanted = False
        raise
    package.__class__ = ModuleType
