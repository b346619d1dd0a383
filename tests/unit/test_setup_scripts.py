"""Setting up: the right Python is found or asked for, and CI runs what it should."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("sh", "bash", "dirname", "env", "id", "sed", "grep", "expand", "make")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with the shell's own tools and no Python: the only entry of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return folder


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run(tools: Path, *command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env={"PATH": str(tools)}
    )


def make_venv(tools: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run(tools, str(ROOT / "scripts" / "make-venv"), cwd=cwd)


NOT_FOUND = "homer: Python 3.11, 3.12 or 3.13 is needed"


def python(folder: Path, name: str, minor: int, *, venv: bool = True) -> None:
    """A Python 3.``minor`` that makes a venv by writing its own name and arguments to a file."""
    program(
        folder,
        name,
        f"""case "$2" in
            *version_info*) case "$2" in *"(3, {minor})"*) exit 0;; *) exit 1;; esac;;
            *ensurepip*) exit {0 if venv else 1};;
        esac
        echo "{name} $@" > made""",
    )


def test_without_a_python_it_says_which_to_install(tools: Path, tmp_path: Path) -> None:
    done = make_venv(tools, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(NOT_FOUND)
    assert "apt install" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("minor", [10, 14])
def test_an_older_and_newer_version_are_not_taken(tools: Path, tmp_path: Path, minor: int) -> None:
    python(tools, "python3", minor)
    assert make_venv(tools, tmp_path).stderr.startswith(NOT_FOUND)


def test_a_python_without_its_venv_module_is_said(tools: Path, tmp_path: Path) -> None:
    python(tools, "python3.12", 12, venv=False)
    done = make_venv(tools, tmp_path)
    assert done.returncode == 1
    assert "python3.12 has no venv module" in done.stderr


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        ({"python3.11": 11, "python3.12": 12, "python3.13": 13}, "python3.13"),
        ({"python3.11": 11, "python3.12": 12}, "python3.12"),
        ({"python3.11": 11, "python3": 13}, "python3"),
        ({"python3.11": 11, "python3": 14}, "python3.11"),
        ({"python": 12}, "python"),
    ],
)
def test_the_newest_python_that_fits_makes_the_venv(
    tools: Path, tmp_path: Path, there: dict[str, int], taken: str
) -> None:
    for name, minor in there.items():
        python(tools, name, minor)
    done = make_venv(tools, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made").read_text() == f"{taken} -m venv .venv\n"


def test_names_that_do_not_run_or_lack_venv_are_passed(tools: Path, tmp_path: Path) -> None:
    program(tools, "python3.13", 'echo "pyenv: python3.13: command not found" >&2; exit 127')
    python(tools, "python3.12", 12, venv=False)
    python(tools, "python3.11", 11)
    done = make_venv(tools, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "made").read_text() == "python3.11 -m venv .venv\n"


def test_a_python_that_is_named_is_taken_or_refused(tools: Path, tmp_path: Path) -> None:
    for minor in (10, 12, 13):
        python(tools, f"python3.{minor}", minor)
    script = str(ROOT / "scripts" / "make-venv")
    done = run(tools, "env", "PYTHON=python3.12", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made").read_text() == "python3.12 -m venv .venv\n"
    for name in ("python3.10", "python3.9"):
        done = run(tools, "env", f"PYTHON={name}", script, cwd=tmp_path)
        assert done.returncode == 1
        assert done.stderr.startswith(f"homer: PYTHON={name} does not run, or is not Python 3.11")


def test_make_alone_lists_what_it_can_do() -> None:
    path = {"PATH": os.environ["PATH"]}
    done = subprocess.run(["make"], capture_output=True, text=True, cwd=ROOT, env=path)
    assert done.returncode == 0
    for target in ("setup", "demo", "test", "check", "bench", "eval", "eval-local", "eval-egolife"):
        assert f"\n{target} " in f"\n{done.stdout}"
