"""Files in the folders that an operator allows others to add videos from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path


def paths_within(folders: Sequence[Path], given: str) -> list[Path]:
    """Return what a path, absolute or relative to a folder, names in each; links are followed."""
    return [path for folder in folders for path in _resolve_in(folder, given)]


def first_file(paths: Iterable[Path]) -> Path | None:
    """Return the first of these that is a file."""
    with suppress(OSError):  # The name is not valid.
        return next((path for path in paths if path.is_file()), None)
    return None


def _resolve_in(folder: Path, given: str) -> list[Path]:
    """Resolve a path with its links, and return it if it lies in the folder."""
    try:
        root = folder.resolve()
        path = (root / given).resolve()
        return [path] if path != root and path.is_relative_to(root) else []
    except (OSError, ValueError, RuntimeError):  # NUL, lone surrogates, circular links
        return []
