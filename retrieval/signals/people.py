"""People: how well what the people of each option do or say fits the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.heuristics.actors import NARRATES, actor_lines, are_people, people_of, plain_names
from retrieval.line_set import Floats, LineSet, Scores
from store.queries.search import StoredLine


@dataclass(frozen=True)
class Roster:
    """Who speaks in a view: lines by name; whether it is narrated in the first person, by whom."""

    lines: Mapping[str, int]
    narrator: str | None
    narrated: bool

    def people(self, options: Sequence[str]) -> list[tuple[str, ...]]:
        """Return whom each option names; empty where the options are not people."""
        known = plain_names(self.lines)
        found = [people_of(option, known, self.narrator) for option in options]
        return found if are_people(found) else []


def roster(speakers: Mapping[str, int], sample: Sequence[StoredLine]) -> Roster:
    """Find the narrator: where descriptions are in the first person, who speaks most."""
    actors = actor_lines(sample)
    narrated = actors.first_person.sum() >= NARRATES * max(1, actors.told.sum())
    narrator = most_frequent(speakers) if narrated else None
    return Roster(speakers, narrator, bool(narrated))


def most_frequent(speakers: Mapping[str, int]) -> str | None:
    """Return who speaks most, of those with a plain name; None without any."""
    spoken = {name: speakers[name] for name in sorted(plain_names(speakers).values())}
    return max(spoken, key=lambda name: spoken[name], default=None)


def actor_fits(
    lines: LineSet, roster: Roster, people: Sequence[tuple[str, ...]], cosines: Floats, floor: float
) -> Scores:
    """Score each option (O,) in each cell (N,) by the closest line of its people, shape (O, N).

    Args:
        lines: the lines.
        roster: who speaks, and who narrates.
        people: whom each option names.
        cosines: of every line (M,) with the question as somebody's doing.
        floor: the mean of such cosines, for cells without a line of theirs.
    """
    actors = actor_lines([row for _, row in lines.rows])
    known = sorted(plain_names(roster.lines).values())

    def best(name: str) -> NDArray[np.floating]:
        own = actors.of([name], narrator=name == roster.narrator, speakers=known)
        return lines.largest(np.where(own, cosines, floor))

    closest = {name: best(name) for name in sorted({n for option in people for n in option})}
    blank = np.full((len(people), lines.cell_count), floor)
    for number, names in enumerate(people):
        if names:
            blank[number] = np.mean([closest[name] for name in names], axis=0)
    return blank
