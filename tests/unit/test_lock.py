"""The lock files: complete and consistent on every Python that Homer runs on."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
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
