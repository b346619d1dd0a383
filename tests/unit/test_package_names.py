"""Homer's package names in an environment: what is in the wheel, and who else has them."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path

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
