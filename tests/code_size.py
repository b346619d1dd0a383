"""``python -m tests.code_size``: the size of the core, class names used twice, late imports."""

from __future__ import annotations

import ast
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.packages import ROOT, homer_packages

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class FileSize:
    """One file: the lines of its functions by name, its classes, the lines of late imports."""

    path: Path
    lines: int
    functions: list[tuple[str, int]]
    classes: list[str]
    late_imports: list[int]


def measure() -> list[FileSize]:
    """Measure every Python file of the core."""
    return [measure_file(path) for path in core()]


def core() -> list[Path]:
    """List the Python files of Homer's packages, without tests, benchmarks and migrations."""
    return sorted(path for name in homer_packages() for path in (ROOT / name).rglob("*.py"))


def measure_file(path: Path) -> FileSize:
    """Measure one file."""
    text = path.read_text(encoding="utf-8")
    nodes = list(_nodes(ast.parse(text)))
    return FileSize(
        path=path,
        lines=text.count("\n"),
        functions=[
            (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
            for node, _ in nodes
            if isinstance(node, FUNCTIONS)
        ],
        classes=[node.name for node, _ in nodes if isinstance(node, ast.ClassDef)],
        late_imports=sorted(
            node.lineno
            for node, within in nodes
            if within and isinstance(node, ast.Import | ast.ImportFrom)
        ),
    )


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node, and whether it stands within a function."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, within = waiting.pop()
        yield node, within
        inner = within or isinstance(node, FUNCTIONS)
        waiting.extend((child, inner) for child in ast.iter_child_nodes(node))


def shared_class_names(files: Iterable[FileSize]) -> dict[str, list[str]]:
    """Find class names that stand for more than one class, with the files of each."""
    found = defaultdict(list)
    for file in files:
        for name in file.classes:
            found[name].append(str(file.path.relative_to(ROOT)))
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def main() -> None:
    """Print the figures, then the names that are used for more than one class."""
    files = measure()
    shared = shared_class_names(files)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    print(f"commit                    {commit or 'unknown'}")
    print(f"lines                     {sum(file.lines for file in files)}")
    print(f"files                     {len(files)}")
    print(f"functions                 {sum(len(file.functions) for file in files)}")
    print(f"function-level imports    {sum(len(file.late_imports) for file in files)}")
    print(f"class names used twice    {len(shared)}")
    for name, paths in shared.items():
        print(f"  {name}: {', '.join(paths)}")


if __name__ == "__main__":
    main()
