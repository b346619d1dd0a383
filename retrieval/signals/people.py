"""The people signal: how well actions and words of the people of each option fit the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.heuristics.actors import (
    FIRST_PERSON_SHARE,
    actor_lines,
    are_people,
    people_in_option,
    plain_names,
)
from retrieval.line_set import Floats, LineSet, Scores
from store.queries.search import StoredLine


@dataclass(frozen=True)
class Roster:
    """The speakers of a view: lines by name, the narrator, and whether one narrates in view."""

    lines: Mapping[str, int]
    narrator: str | None
    narrated: bool

    def people(self, options: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the people that each option names; [] if the options are not people."""
        known = plain_names(self.lines)
        people = [people_in_option(option, known, self.narrator) for option in options]
        return people if are_people(people) else []


def roster(speakers: Mapping[str, int], sample: Sequence[StoredLine]) -> Roster:
    """Find the narrator: the most frequent speaker, if descriptions are in the first person."""
    actors = actor_lines(sample)
    narrated = actors.first_person.sum() >= FIRST_PERSON_SHARE * max(1, actors.descriptions.sum())
    narrator = most_frequent(speakers) if narrated else None
    return Roster(speakers, narrator, bool(narrated))


def most_frequent(speakers: Mapping[str, int]) -> str | None:
    """Return the most frequent speaker with a plain name; None without any."""
    line_counts = {name: speakers[name] for name in sorted(plain_names(speakers).values())}
    return max(line_counts, key=lambda name: line_counts[name], default=None)


def actor_fits(
    lines: LineSet, roster: Roster, people: Sequence[tuple[str, ...]], cosines: Floats, floor: float
) -> Scores:
    """Score each option (O,) in each cell (N,) by the closest line of its people, shape (O, N).

    Args:
        roster: Speakers and narrator.
        people: The people that each option names.
        cosines: Cosines of every line (M,) with the question as a statement about someone.
        floor: The mean of such cosines, for cells without a line of these people.
    """
    actors = actor_lines([row for _, row in lines.rows])
    speakers = sorted(plain_names(roster.lines).values())

    def best_cosines(name: str) -> NDArray[np.floating]:
        mask = actors.mask([name], narrator=name == roster.narrator, speakers=speakers)
        return lines.largest(np.where(mask, cosines, floor))

    closest = {
        name: best_cosines(name) for name in sorted({n for option in people for n in option})
    }
    fits = np.full((len(people), lines.cell_count), floor)
    for number, names in enumerate(people):
        if names:
            fits[number] = np.mean([closest[name] for name in names], axis=0)
    return fits
