"""``python -m tests.code_size``: the size of the core, class names used twice, late imports."""

from __future__ import annotations

import ast
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.packages import ROOT, homer_packages

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class CodeSize:
    """The core's size; ``shared`` has the modules of each class name that is used twice or more."""

    lines: int
    files: int
    functions: int
    shared: dict[str, list[str]]
    late_imports: list[str]


def measure() -> CodeSize:
    """Measure every Python file of the core."""
    sources = {path: path.read_text(encoding="utf-8") for path in core()}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    return CodeSize(
        lines=sum(text.count("\n") for text in sources.values()),
        files=len(sources),
        functions=sum(isinstance(node, FUNCTIONS) for t in trees.values() for node in ast.walk(t)),
        shared=shared_class_names(trees),
        late_imports=[place for path, tree in trees.items() for place in late_imports(path, tree)],
    )


def core() -> list[Path]:
    """List the Python files of Homer's packages, without tests, benchmarks and migrations."""
    return sorted(path for name in homer_packages() for path in (ROOT / name).rglob("*.py"))


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
    size = measure()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    print(f"commit                    {commit or 'unknown'}")
    print(f"lines                     {size.lines}")
    print(f"files                     {size.files}")
    print(f"functions                 {size.functions}")
    print(f"function-level imports    {len(size.late_imports)}")
    print(f"class names used twice    {len(size.shared)}")
    for name, paths in size.shared.items():
        print(f"  {name}: {', '.join(paths)}")


if __name__ == "__main__":
    main()
