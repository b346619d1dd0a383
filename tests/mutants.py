"""``python -m tests.mutants``: break the code in random places, and count what unit tests notice.

A copy of the checkout is mutated by mutmut in a temporary folder; nothing is written here.
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
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.rooms import ROOT

ROOMS = ("domain", "agent", "people", "retrieval")
LEFT_OUT = ("test_house_rules.py", "test_frozen_words.py")
"""Tests of how the code is written, which mutmut's own code breaks."""
NONE = "no_mutant_has_this_name"
"""Run without a mutant, mutmut makes them all and notes which tests call which function."""
STATS = "mutants/mutmut-stats.json"
"""Which tests call which function; mutmut writes it once it has seen all tests pass."""
KILLED: dict[int | None, str] = dict.fromkeys((1, 3, 24, -24, 36, 152, 255, -11, -9), "killed")
ENDS: dict[int | None, str] = {**KILLED, 0: "survived", 5: "untested", 33: "untested"}
"""What exit codes of tests say, as mutmut has them: too long or a crash is noticed as well."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Try a sample of mutants and print which survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=200, help="mutants to try")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another sample")
    parser.add_argument("--rooms", nargs="+", default=ROOMS, help=f"of {' '.join(ROOMS)}")
    asked = parser.parse_args(arguments)
    with TemporaryDirectory() as name:
        folder = Path(name)
        copy_checkout(folder, asked.rooms)
        mutmut(folder, NONE)
        found = mutants(folder)
        chosen = random.Random(asked.seed).sample(sorted(found), min(asked.number, len(found)))
        mutmut(folder, *chosen)
        ends = mutants(folder)
        report({one: ENDS.get(ends[one], "unclear") for one in chosen}, len(found), folder)
    return 0


def copy_checkout(folder: Path, rooms: Sequence[str]) -> None:
    """Copy what git tracks to ``folder``, and configure mutmut there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "mutants").mkdir()
    (folder / "mutants" / ".venv").symlink_to(ROOT / ".venv")
    others = sorted({name.split("/")[0] for name in names} - {*rooms, "tests", "pyproject.toml"})
    settings = {
        "source_paths": [*rooms],
        "also_copy": others,
        "pytest_add_cli_args": ["-n", "0", "-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": tests_of(rooms),
    }
    with (folder / "pyproject.toml").open("a") as config:
        config.write("\n[tool.mutmut]\n")
        config.writelines(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())


def tests_of(rooms: Sequence[str]) -> list[str]:
    """List the files of unit tests that import from any of the rooms."""
    imports = re.compile(rf"^from ({'|'.join(rooms)})[. ]", re.MULTILINE)
    files = [one for one in (ROOT / "tests" / "unit").glob("test_*.py") if one.name not in LEFT_OUT]
    return sorted(str(one.relative_to(ROOT)) for one in files if imports.search(one.read_text()))


def mutmut(folder: Path, *names: str) -> None:
    """Run mutmut on the mutants of these names; it complains where there are none.

    Raises:
        SystemExit: The tests fail without any mutant.
    """
    command = [sys.executable, "-m", "mutmut", "run", *names]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode and (names != (NONE,) or not (folder / STATS).exists()):
        raise SystemExit(f"mutmut failed:\n{done.stdout[-4000:]}")


def mutants(folder: Path) -> dict[str, int | None]:
    """Read every mutant's name, with the exit code of its tests where they were run."""
    found: dict[str, int | None] = {}
    for path in sorted((folder / "mutants").rglob("*.py.meta")):
        found |= json.loads(path.read_text())["exit_code_by_key"]
    return found


def report(ends: dict[str, str], of: int, folder: Path) -> None:
    """Print what each mutant that was not killed changes, and the share that was killed."""
    for name, end in sorted(ends.items()):
        if end != "killed":
            print(f"{end}: {name}")
            command = [sys.executable, "-m", "mutmut", "show", name]
            shown = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            print(changed_lines(shown.stdout))
    counts = Counter(ends.values())
    output = ", ".join(f"{count} {end}" for end, count in counts.most_common())
    reached = len(ends) - counts["untested"]
    share = f"{counts['killed'] / reached:.0%}" if reached else "none"
    print(f"{len(ends)} of {of} mutants: {output}; of those that unit tests reach, {share} killed")


def changed_lines(diff: str) -> str:
    """Keep the lines of a diff that differ."""
    lines = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in "+++---"]
    return "\n".join(f"    {line}" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
