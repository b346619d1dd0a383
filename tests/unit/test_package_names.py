"""Packages and scripts of setting up: names, extras, locks, and the right Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageMetadata, PackageNotFoundError, distributions, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from domain.errors import SetupError
from models.endpoint import make_chat_model
from models.keys_and_packages import EVALUATION, OTEL, extra_of
from models.specs import ChatSpec
from services.health import OUR_NAMES, Check, names_taken

ROOT = Path(__file__).parents[2]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
    "wheel"
]
PYTHONS = ("3.11", "3.12", "3.13")
NOT_FOUND = "homer: Python 3.11, 3.12 or 3.13 is needed"
ORT = "import os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
HUB = "from huggingface_hub import constants as c; print(c.HF_HUB_DISABLE_TELEMETRY)"
SILENT = {
    *("DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "ORT_DISABLE_TELEMETRY"),
    "DO_NOT_TRACK",
}


def install(site: Path, name: str, record: list[str], top_level: str | None = None) -> None:
    """Write the metadata of a distribution into ``site``."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in record))
    if top_level is not None:
        (info / "top_level.txt").write_text(top_level)


def looked_at(site: Path) -> Check:
    return names_taken(distributions(path=[str(site)]))


def test_another_distribution_with_one_of_our_names_is_found(tmp_path: Path) -> None:
    install(tmp_path, "other", ["api/__init__.py", "other/models/x.py", "../../bin/cli.py"])
    found = looked_at(tmp_path)
    assert not found.ok
    assert found.found.endswith("with a package of Homer's names: other (api)")
    assert "virtual environment" in found.fix


def test_a_module_and_a_namespace_package_count(tmp_path: Path) -> None:
    install(tmp_path, "one", ["store.py"])
    install(tmp_path, "two", ["models/part/x.py"])
    install(tmp_path, "three", [], top_level="flows\n")
    assert looked_at(tmp_path).found.endswith(": one (store); three (flows); two (models)")


def test_homer_and_unrelated_distributions_do_not_count(tmp_path: Path) -> None:
    install(tmp_path, "homer-video", ["api/__init__.py", "cli/main.py"])
    install(tmp_path, "unrelated", ["unrelated/api.py", "api-1.0.data/x.txt"])
    assert looked_at(tmp_path).ok


def test_no_package_of_this_environment_has_one_of_our_names() -> None:
    assert names_taken(distributions()).found.startswith("no other")


def test_our_names_are_those_of_the_wheel() -> None:
    assert set(WHEEL["packages"]) == OUR_NAMES
    assert "benchmarks" not in OUR_NAMES


def test_what_the_wheel_leaves_out_is_imported_by_nothing() -> None:
    rooms = [path for room in OUR_NAMES for path in (ROOT / room).rglob("*.py")]
    assert [
        path for path in rooms if re.search(r"import.*benchmarks|from benchmarks", path.read_text())
    ] == []


@pytest.mark.parametrize("provider", ["openai", "google_genai", "llama", "otel", "evaluation"])
def test_our_extras_have_what_is_named(provider: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = {"otel": OTEL, "evaluation": EVALUATION}.get(provider) or extra_of(provider)
    assert extra.name is not None
    wanted = project["optional-dependencies"][extra.name]
    assert {re.split("[<>=]", name)[0] for name in wanted} == set(extra.packages)
    assert extra.installed
    assert f'extra "{extra.name}"' in extra.hint


def test_a_provider_that_is_not_ours_goes_by_langchains_names() -> None:
    extra = extra_of("google_vertexai")
    assert extra.modules == ("langchain_google_vertexai",)
    assert not extra.installed
    assert extra.hint == (".venv/bin/pip install -c constraints.txt langchain-google-vertexai")


def test_a_model_without_its_package_says_how_to_get_it() -> None:
    with pytest.raises(SetupError, match=r"constraints\.txt langchain-mistralai"):
        make_chat_model(ChatSpec(model="mistralai:small"), None)


def applies(wanted: Requirement, python: str) -> bool:
    """Whether a requirement holds on a version of Python, without extras."""
    on = {"python_version": python, "python_full_version": f"{python}.1", "extra": ""}
    return wanted.marker is None or wanted.marker.evaluate(on)


@cache
def pins(lock: str, python: str) -> dict[str, Requirement]:
    found = map(Requirement, re.sub(" --hash=.*", "", (ROOT / lock).read_text()).splitlines())
    return {canonicalize_name(one.name): one for one in found if applies(one, python)}


@cache
def installed(name: str) -> PackageMetadata | None:
    """What is known of a package; None where it is pinned for another Python only."""
    try:
        return metadata(name)
    except PackageNotFoundError:
        return None


def unmet(lock: str, python: str) -> Iterator[str]:
    """What a pinned package needs on ``python`` and the lock does not give it."""
    locked = pins(lock, python)
    for name in locked:
        output = installed(name)
        for line in (output.get_all("Requires-Dist") if output else None) or ():
            wanted = Requirement(line)
            needed = canonicalize_name(wanted.name)
            # The lock files have the headless build instead (requirements-headless.in).
            if needed in {"opencv-python"} or not applies(wanted, python):
                continue
            pin = str(locked[needed].specifier)[2:] if needed in locked else ""
            if not pin or not wanted.specifier.contains(pin, prereleases=True):
                yield f"{name} needs {line}, locked: {pin or 'nothing'}"


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_has_all_that_its_packages_need(lock: str, python: str) -> None:
    assert list(unmet(lock, python)) == []


@pytest.mark.parametrize("python", PYTHONS)
def test_every_locked_package_supports_every_python(python: str) -> None:
    for name in pins("requirements-dev.lock", python):
        found = installed(name)
        needs = found["Requires-Python"] if found and "Requires-Python" in found else ""
        assert SpecifierSet(needs).contains(f"{python}.1"), f"{name} needs {needs}"


def test_the_project_allows_just_these_pythons() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    allowed = SpecifierSet(project["requires-python"])
    assert [minor for minor in range(20) if allowed.contains(f"3.{minor}.1")] == [11, 12, 13]


@pytest.mark.parametrize(
    ("first", "report", "expected"),
    [
        ("models.onnx, onnxruntime", ORT, "1"),
        ("models.speech, faster_whisper", ORT, "1"),
        ("models.toolbox, onnxruntime", ORT, "1"),
        ("models.speech", HUB, "True"),
        ("evals.training", HUB, "True"),
    ],
)
def test_libraries_report_nothing(tmp_path: Path, first: str, report: str, expected: str) -> None:
    outer = {k: v for k, v in os.environ.items() if k not in SILENT}
    done = subprocess.run(
        [sys.executable, "-c", f"import {first}\n{report}"],
        env={**outer, "HOME": str(tmp_path), "XDG_CACHE_HOME": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, expected), done.stderr
    assert not (tmp_path / ".cache" / "Microsoft").exists()


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with the shell's own tools and no Python: the only entry of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "bash", "dirname", "env", "id", "sed", "grep", "expand", "make"):
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
