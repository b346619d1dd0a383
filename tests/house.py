"""``python -m tests.house``: how large the core is, and which names and imports break its rules."""

from __future__ import annotations

import ast
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.rooms import ROOT, rooms

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class House:
    """The core's size; ``shared`` has the modules of each class name that is used twice or more."""

    lines: int
    files: int
    functions: int
    shared: dict[str, list[str]]
    late_imports: list[str]


def measure() -> House:
    """Measure every Python file of the rooms."""
    sources = {path: path.read_text(encoding="utf-8") for path in core()}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    return House(
        lines=sum(text.count("\n") for text in sources.values()),
        files=len(sources),
        functions=sum(isinstance(node, FUNCTIONS) for t in trees.values() for node in ast.walk(t)),
        shared=shared_class_names(trees),
        late_imports=[place for path, tree in trees.items() for place in late_imports(path, tree)],
    )


def core() -> list[Path]:
    """List the Python files of all rooms: no tests, benchmarks or migrations."""
    return sorted(path for room in rooms() for path in (ROOT / room).rglob("*.py"))


def shared_class_names(trees: dict[Path, ast.Module]) -> dict[str, list[str]]:
    """Find class names that stand for more than one class."""
    found = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(ROOT)))
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def late_imports(path: Path, tree: ast.Module) -> Iterator[str]:
    """Find imports within functions, as ``file:line``."""
    lines = {
        node.lineno
        for function in ast.walk(tree)
        if isinstance(function, FUNCTIONS)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    yield from (f"{path.relative_to(ROOT)}:{line}" for line in sorted(lines))


def main() -> None:
    """Print the figures, then the names that are used for more than one class."""
    house = measure()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    print(f"commit                    {commit or 'unknown'}")
    print(f"lines                     {house.lines}")
    print(f"files                     {house.files}")
    print(f"functions                 {house.functions}")
    print(f"function-level imports    {len(house.late_imports)}")
    print(f"class names used twice    {len(house.shared)}")
    for name, paths in house.shared.items():
        print(f"  {name}: {', '.join(paths)}")


if __name__ == "__main__":
    main()
