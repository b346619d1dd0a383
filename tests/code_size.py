"""``python -m tests.code_size [--write]``: how much of the house a reader must hold in mind.

The figures may only fall: ``tests/unit/test_house_rules.py`` compares them with those written
down in ``code_size.json``, and ``--write`` writes down lower ones.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path

from tests.support.packages import ROOT, homer_packages

WRITTEN_DOWN = Path(__file__).with_suffix(".json")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ALIKE = 0.75
"""Two classes of four fields and more are alike if they share this part of the smaller one's."""


@cache
def core() -> dict[Path, ast.Module]:
    """Parse the Python files of Homer's packages, without tests, benchmarks and migrations."""
    paths = sorted(path for name in homer_packages() for path in (ROOT / name).rglob("*.py"))
    return {path: ast.parse(path.read_text("utf-8")) for path in paths}


def figures() -> dict[str, int]:
    """Count what may only fall."""
    private_with_one_caller, splats, late, fields = 0, 0, 0, []
    for tree in core().values():
        nodes = list(ast.walk(tree))
        functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
        read = [node.id for node in nodes if isinstance(node, ast.Name)]
        stored = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        used = Counter(read) - Counter(stored)
        used += Counter(node.attr for node in nodes if isinstance(node, ast.Attribute))
        private_with_one_caller += sum(
            one.name[0] == "_" and one.name[1] != "_" and used[one.name] == 1 for one in functions
        )
        within = {id(node) for one in functions for node in ast.walk(one)}
        late += sum(isinstance(n, ast.Import | ast.ImportFrom) and id(n) in within for n in nodes)
        splats += sum(
            any(isinstance(a, ast.Starred) and isinstance(a.value, ast.Name) for a in node.args)
            for node in nodes
            if isinstance(node, ast.Call)
        )
        fields += [_fields(node) for node in nodes if isinstance(node, ast.ClassDef)]
    with_fields = [one for one in fields if one]
    return {
        "lines": sum(map(_lines, core())),
        "files": len(core()),
        "lines of tests": sum(map(_lines, (ROOT / "tests").rglob("*.py"))),
        "private functions with one caller": private_with_one_caller,
        "classes with fields": len(with_fields),
        "pairs of alike classes": sum(
            len(a & b) >= ALIKE * min(len(a), len(b))
            for a, b in combinations([one for one in with_fields if len(one) >= 4], 2)
        ),
        "calls with *names": splats,
        "imports within functions": late,
    }


def _lines(path: Path) -> int:
    return path.read_text("utf-8").count("\n")


def _fields(node: ast.ClassDef) -> frozenset[str]:
    targets = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
    names = [one.id for one in targets if isinstance(one, ast.Name)]
    return frozenset(name for name in names if name[0] != "_")


def main() -> None:
    """Print each figure beside the one that was written down."""
    now, before = figures(), json.loads(WRITTEN_DOWN.read_text())
    for name, value in now.items():
        most = before.get(name)
        print(f"{name:36}{value:8} (at most {most})")
    if "--write" in sys.argv:
        lower = {name: min(value, before.get(name, value)) for name, value in now.items()}
        WRITTEN_DOWN.write_text(json.dumps(lower, indent=2) + "\n")


if __name__ == "__main__":
    main()
