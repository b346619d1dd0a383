"""Modules that are imported once something of them is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """A module by its name: ``--help`` and the doors' signatures do not wait for its imports."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Return what the module has under this name."""
        return getattr(import_module(self._name), attribute)
