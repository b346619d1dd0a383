"""Packages: their names, extras and locks, and that none reports to anybody."""

from __future__ import annotations

import os
import re
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

from models.extras import EVALUATION, OTEL, extra_of
from services.health import OUR_NAMES, Check, names_taken

ROOT = Path(__file__).parents[2]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
    "wheel"
]


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


PYTHONS = ("3.11", "3.12", "3.13")
LOCKS = ("requirements.lock", "requirements-dev.lock")
# The lock files have the headless build instead (requirements-headless.in).
OVERRIDDEN = {"opencv-python"}


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
            if needed in OVERRIDDEN or not applies(wanted, python):
                continue
            pin = str(locked[needed].specifier)[2:] if needed in locked else ""
            if not pin or not wanted.specifier.contains(pin, prereleases=True):
                yield f"{name} needs {line}, locked: {pin or 'nothing'}"


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", LOCKS)
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


ORT = "import os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
HUB = "from huggingface_hub import constants as c; print(c.HF_HUB_DISABLE_TELEMETRY)"
SILENT = {
    *("DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "ORT_DISABLE_TELEMETRY"),
    "DO_NOT_TRACK",
}


@pytest.mark.parametrize(
    ("first", "report", "expected"),
    [
        ("models.onnx, onnxruntime", ORT, "1"),
        ("models.whisper, faster_whisper", ORT, "1"),
        ("models.toolbox, onnxruntime", ORT, "1"),
        ("models.whisper", HUB, "True"),
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
