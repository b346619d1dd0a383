"""``python -m tests.mutants``: mutate the code in random places and count the mutants tests kill.

mutmut mutates a copy of the checkout in a temporary folder; the checkout stays as it is. Mutants
that survive the unit tests are tried again with the integration tests of the mutated packages,
which need the embedded Postgres and take longer.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.packages import ROOT

TESTED_THROUGH = {
    "domain": (),
    "agent": ("agent", "graphs"),
    "people": ("people",),
    "retrieval": ("retrieval", "graphs"),
}
"""The packages to mutate, each with those whose importers among integration tests reach it.

Nearly every test imports ``domain``: its mutants are tried with unit tests alone.
"""
EXCLUDED_TESTS = ("test_house_rules.py", "test_translation.py")
"""Tests of the source text, which fail on the code that mutmut adds."""
NO_MUTANT = "no_mutant_has_this_name"
"""With a name that no mutant has, mutmut generates all mutants and collects statistics, no more."""
STATS = "mutants/mutmut-stats.json"
"""Which tests call which function; mutmut writes it once all tests have passed."""
KILLED: dict[int | None, str] = dict.fromkeys((1, 3, 24, -24, 36, 152, 255, -11, -9), "killed")
OUTCOMES: dict[int | None, str] = {**KILLED, 0: "survived", 5: "untested", 33: "untested"}
"""Outcomes by exit code, as mutmut has them; a timeout or a crash kills a mutant as well."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Try a sample of mutants and print which survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=200, help="mutants to try")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another sample")
    parser.add_argument("--packages", nargs="+", choices=TESTED_THROUGH, default=[*TESTED_THROUGH])
    parser.add_argument("--unit", action="store_true", help="do without integration tests")
    parser.add_argument("--processes", type=int, default=2, help="tests that run at once")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as name:
        folder = Path(name)
        copy_checkout(folder)
        select_tests(folder, options.packages, importers(options.packages, "unit"))
        run_mutmut(folder, options.processes, NO_MUTANT)
        generated = sorted(exit_codes(folder))
        size = min(options.number, len(generated))
        sample = random.Random(options.seed).sample(generated, size)
        outcomes = try_mutants(folder, options.processes, sample)
        left = [name for name in sample if outcomes[name] != "killed"]
        print(f"unit tests kill {size - len(left)} of {size}", flush=True)
        slower = [] if options.unit else integration_tests(options.packages)
        if left and slower:
            select_tests(folder, options.packages, slower)
            for name, outcome in try_mutants(folder, options.processes, left).items():
                if outcome != "untested":
                    outcomes[name] = outcome
        report(outcomes, len(generated), folder)
    return 0


def copy_checkout(folder: Path) -> None:
    """Copy the files that git tracks to ``folder``."""
    for name in tracked_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "mutants").mkdir()
    (folder / "mutants" / ".venv").symlink_to(ROOT / ".venv")


def tracked_files() -> list[str]:
    """List the paths of tracked files, relative to the root of the checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]


def select_tests(folder: Path, packages: Sequence[str], tests: Sequence[str]) -> None:
    """Configure mutmut in the copy: the packages to mutate and the test files to run."""
    top = {name.split("/")[0] for name in tracked_files()}
    settings = {
        # Integration tests leave processes that mutmut's own process must not take for mutants.
        "process_isolation": "forkserver",
        "source_paths": [*packages],
        "also_copy": sorted(top - {*packages, "tests", "pyproject.toml"}),
        "pytest_add_cli_args": ["-n", "0", "-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": [*tests],
    }
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in settings.items()]
    original = (ROOT / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text(f"{original}\n[tool.mutmut]\n{''.join(lines)}")


def integration_tests(packages: Sequence[str]) -> list[str]:
    """List the integration tests through which these packages are reached."""
    return importers(
        {name for package in packages for name in TESTED_THROUGH[package]}, "integration"
    )


def importers(packages: Iterable[str], kind: str) -> list[str]:
    """List the test files of a folder of ``tests`` that import from any of the packages."""
    imports = [re.compile(rf"^from {name}[. ]", re.MULTILINE) for name in packages]
    sources = {path: path.read_text() for path in (ROOT / "tests" / kind).glob("test_*.py")}
    return sorted(
        str(path.relative_to(ROOT))
        for path, source in sources.items()
        if path.name not in EXCLUDED_TESTS and any(one.search(source) for one in imports)
    )


def try_mutants(folder: Path, processes: int, names: Sequence[str]) -> dict[str, str]:
    """Run the selected tests on these mutants and return the outcome of each."""
    run_mutmut(folder, processes, *names)
    codes = exit_codes(folder)
    return {name: OUTCOMES.get(codes[name], "unclear") for name in names}


def run_mutmut(folder: Path, processes: int, *names: str) -> None:
    """Run mutmut on the mutants of these names; it exits with an error where there are none.

    Raises:
        SystemExit: The tests fail without any mutant.
    """
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(processes), *names]
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode and (names != (NO_MUTANT,) or not (folder / STATS).exists()):
        raise SystemExit(f"mutmut failed:\n{done.stdout[-4000:]}")


def exit_codes(folder: Path) -> dict[str, int | None]:
    """Read the exit code of every mutant's tests by its name; None where they were not run."""
    found: dict[str, int | None] = {}
    for path in sorted((folder / "mutants").rglob("*.py.meta")):
        found |= json.loads(path.read_text())["exit_code_by_key"]
    return found


def report(outcomes: dict[str, str], total: int, folder: Path) -> None:
    """Print the change of each mutant that was not killed, and the share that was.

    Args:
        outcomes: by the names of the sampled mutants.
        total: how many mutants there are.
        folder: the copy of the checkout.
    """
    for name, outcome in sorted(outcomes.items()):
        if outcome != "killed":
            print(f"{outcome}: {name}")
            command = [sys.executable, "-m", "mutmut", "show", name]
            shown = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            print(changed_lines(shown.stdout))
    counts = Counter(outcomes.values())
    listed = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    share = f"{counts['killed'] / len(outcomes):.0%}" if outcomes else "none"
    print(f"{len(outcomes)} of {total} mutants: {listed}; {share} killed")


def changed_lines(diff: str) -> str:
    """Return the added and removed lines of a diff, indented."""
    lines = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in "+++---"]
    return "\n".join(f"    {line}" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
