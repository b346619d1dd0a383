"""Rules that no other tool checks: sizes, addresses that do not belong, prompts outside code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.code_size import FileSize, measure, shared_class_names
from tests.support.packages import homer_packages

ROOT = Path(__file__).parents[2]
PACKAGES = homer_packages()
CODE = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
MOST_LATE_IMPORTS = 123
"""Imports within functions: of heavy packages that a start of Homer does without."""
BINARY = {".mp4", ".png", ".jpg", ".onnx"}


def tracked() -> list[Path]:
    """Files of the checkout that git knows; all text files where there is no git."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]


@cache
def sizes() -> list[FileSize]:
    return measure()


@pytest.mark.parametrize("package", PACKAGES)
def test_files_and_functions_stay_small(package: str) -> None:
    for file in sizes():
        if (ROOT / package) in file.path.parents:
            assert file.lines < 500, file.path
            assert [name for name, lines in file.functions if lines > 100] == [], file.path


def test_functions_are_mostly_short() -> None:
    lines = sorted(count for file in sizes() for _name, count in file.functions)
    assert lines[len(lines) // 2] <= 10
    assert lines[int(0.9 * len(lines))] <= 40


def test_a_class_name_means_one_thing() -> None:
    assert shared_class_names(sizes()) == {}


def test_imports_stand_at_the_top_of_files() -> None:
    assert sum(len(file.late_imports) for file in sizes()) <= MOST_LATE_IMPORTS


def test_only_commands_print() -> None:
    printing = [
        path
        for path in CODE
        if path.parent.name != "cli" and re.search(r"^\s*print\(", path.read_text(), re.MULTILINE)
    ]
    assert printing == []


def test_sql_stays_in_the_store() -> None:
    words = re.compile(r"\b(SELECT .+ FROM|INSERT INTO|DELETE FROM|UPDATE \w+ SET|CREATE TABLE)\b")
    outside = [p for p in CODE if "store" not in p.parts and words.search(p.read_text())]
    assert outside == []


def test_importing_a_package_connects_to_nothing_and_writes_nothing(tmp_path: Path) -> None:
    """Commands, pages and flows are imported in an empty home, which stays empty."""
    modules = ["flows.ingest_files", "graphs.ask", "views.library", "store.database", "ui.server"]
    modules += [f"cli.{path.stem}" for path in CODE if path.parent.name == "cli"]
    code = "import " + ", ".join(modules)
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"HOMER_HOME": str(home), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
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
    doc = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text()))
    assert doc
