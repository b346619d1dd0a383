"""``python -m tests.fuzz``: run mutated cases through all parsers and print a table of outcomes.

The exit code is 1 where a parser crashed, hung or took too much memory. A finding is printed as
``TARGET:NUMBER``; ``--save FOLDER`` writes its bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.fuzz.campaign import Tally, run
from tests.fuzz.targets import TARGETS

HEADS = ("parser", "cases", "read", "refused", "crash", "hang", "memory", "slowest s", "most MB")


def main() -> int:
    """Reads the arguments, runs, and prints."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="of all parsers together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case of each")
    parser.add_argument("--target", action="append", choices=[*TARGETS], help="repeatable")
    parser.add_argument("--seconds", type=float, help="the most for each parser")
    parser.add_argument("--save", type=Path, help="a folder for the bytes of findings")
    chosen = parser.parse_args()
    names = chosen.target or [*TARGETS]
    whole = sum(TARGETS[name].share for name in names)
    tallies = []
    for name in names:
        end = chosen.first + round(chosen.cases * TARGETS[name].share / whole)
        tallies.append(run(name, chosen.seed, chosen.first, end, chosen.seconds))
        if chosen.save:
            save(tallies[-1], chosen.seed, chosen.save)
    show(tallies)
    return 1 if any(tally.findings for tally in tallies) else 0


def save(tally: Tally, seed: int, folder: Path) -> None:
    """Writes the bytes of findings, under the name of their parser."""
    target = TARGETS[tally.target]
    if tally.findings:
        target.begin()
    for number, _message in tally.findings:
        name, data = target.case(seed, number)
        path = folder / tally.target / f"case{number}-{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def show(tallies: list[Tally]) -> None:
    """The table, and a line a finding."""
    rows = [
        (
            *(tally.target, tally.cases),
            *(tally.outcomes[kind] for kind in ("read", "refused", "crash", "hang", "memory")),
            *(f"{tally.slowest_s:.2f}", tally.most_mb),
        )
        for tally in tallies
    ]
    cells = [HEADS, *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(HEADS))]
    for row in cells:
        padded = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        padded[0] = row[0].ljust(widths[0])
        print("  ".join(padded))
    for tally in tallies:
        if tally.slowest_s > 1 or tally.most_mb > 100:
            print(f"{tally.target}: slowest {tally.slowest}, largest {tally.largest}")
        for number, output in tally.findings:
            print(f"{tally.target}:{number} {output}")


if __name__ == "__main__":
    raise SystemExit(main())
