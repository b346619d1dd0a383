"""Rules that no other tool checks: sizes that only fall, addresses that do not belong."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.code_size import FUNCTIONS, WRITTEN_DOWN, core, figures
from tests.support.packages import homer_packages

ROOT = Path(__file__).parents[2]
PACKAGES = homer_packages()
CODE = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
BINARY = {".mp4", ".png", ".jpg", ".onnx"}


def tracked() -> list[Path]:
    """Files of the checkout that git knows; all text files where there is no git."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]


def test_files_and_functions_stay_within_bounds() -> None:
    for path, tree in core().items():
        assert path.read_text("utf-8").count("\n") < 500, path
        functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
        assert [f.name for f in functions if (f.end_lineno or 0) - f.lineno >= 100] == [], path


def test_the_house_only_shrinks() -> None:
    """Lower figures are written down with ``python -m tests.code_size --write``."""
    most = json.loads(WRITTEN_DOWN.read_text())
    assert {name: value for name, value in figures().items() if value > most[name]} == {}


def test_only_commands_print() -> None:
    printing = [
        path
        for path in CODE
        if path.parent.name != "cli" and re.search(r"^\s*print\(", path.read_text(), re.MULTILINE)
    ]
    assert printing == []


def test_sql_stays_in_the_store() -> None:
    words = re.compile(r"\b(SELECT .+ FROM|INSERT INTO|DELETE FROM|UPDATE \w+ SET|CREATE TABLE)\b")
    assert [p for p in CODE if "store" not in p.parts and words.search(p.read_text())] == []


def test_importing_a_package_connects_to_nothing_and_writes_nothing(tmp_path: Path) -> None:
    """Commands, pages and flows are imported in an empty home, which stays empty."""
    modules = ["flows.watching", "library.memory", "store.database", "services.supervisor"]
    modules += [f"cli.{path.stem}" for path in CODE if path.parent.name == "cli"]
    done = subprocess.run(
        [sys.executable, "-c", "import " + ", ".join(modules)],
        env={"HOMER_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_no_file_names_a_place_of_this_machine_or_a_registry() -> None:
    places = re.compile(rb"/wor[k]/|/tm[p]/w\b|/roo[t]/|pypi\.org|extra-index-ur[l]")
    named = [
        str(path.relative_to(ROOT))
        for path in tracked()
        if path.is_file() and path.suffix not in BINARY and places.search(path.read_bytes())
    ]
    assert named == []


def test_the_repository_stays_light() -> None:
    heavy = [path for path in tracked() if path.is_file() and path.stat().st_size > 5_000_000]
    assert heavy == []


@pytest.mark.parametrize("package", [name for name in PACKAGES if name not in ("cli", "evals")])
def test_every_package_has_a_docstring(package: str) -> None:
    assert ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text()))
