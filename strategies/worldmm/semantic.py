"""Semantic triples: what lasts, each with the episodic triples it rests on; pure.

Without a language model, what recurs on enough occasions is taken to last. A triple that is said
again or contradicted is closed at that clip, never deleted, so that every moment can be asked as it
was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import NonNegativeInt

from domain.base import Frozen
from domain.sentences import Triple
from domain.time import TimeSpan
from retrieval.english import head_of
from strategies.worldmm.graph import Vectors

NOT = "not "
"""What the predicate of a denial begins with."""
SINGLE = frozenset({"be", "be in", "be on", "be at", "be named", "be called", "prefer"}) | {
    f"{verb} {place}" for verb in ("live", "work", "sit", "sleep") for place in ("in", "at", "on")
}
"""Predicates of which a subject has one value at a time: a newer one closes an older one."""
_TRANSIENT = frozenset(
    {"see", "look", "watch", "hear", "notice", "do", "have", "say", "ask", "tell", "think", "know"}
    | {"take", "get", "go", "come"}
)
"""Verbs that everybody does all the time: that they recur tells nothing that lasts."""

Key = tuple[str, str, str]
"""Subject, predicate and the object's head."""


class EpisodicTriple(Frozen):
    """A triple of a caption: when it was, and the clip from which on it is known."""

    triple: Triple
    span: TimeSpan
    clip: NonNegativeInt


class SemanticTriple(Frozen):
    """What lasts, from ``from_clip`` on, until another took its place at ``to_clip``.

    ``evidence``: the clips of the episodic triples that it rests on, the first of each occasion.
    """

    triple: Triple
    evidence: tuple[NonNegativeInt, ...]
    from_clip: NonNegativeInt
    to_clip: NonNegativeInt | None = None

    @property
    def text(self) -> str:
        """As a plain sentence, to be embedded and shown."""
        return self.triple.text


class SemanticChange(Frozen):
    """What a window changes: triples that are closed at its clip, and those that begin there."""

    closed: tuple[SemanticTriple, ...] = ()
    added: tuple[SemanticTriple, ...] = ()


def key_of(triple: Triple) -> Key:
    """Return what two triples have in common that say the same."""
    return triple.subject, triple.predicate, head_of(triple.object)


def says_same(one: Triple, other: Triple) -> bool:
    """Check whether two triples have the same subject, predicate and head of the object."""
    return key_of(one) == key_of(other)


def contradicts(newer: Triple, older: Triple) -> bool:
    """Check whether a newer triple takes the place of an older one with another value.

    That is so for predicates with one value at a time, and for a statement and its denial.
    """
    if newer.subject != older.subject or says_same(newer, older):
        return False
    if newer.predicate == older.predicate:
        return newer.predicate in SINGLE
    denied = newer.predicate.removeprefix(NOT) == older.predicate.removeprefix(NOT)
    return denied and head_of(newer.object) == head_of(older.object)


@dataclass
class Recurrence:
    """How often a triple was seen: the objects as written, and the first of each occasion."""

    objects: Counter[str] = field(default_factory=Counter)
    evidence: list[int] = field(default_factory=list)
    last_ms: int = 0
    clip: int = 0


class Recurrences:
    """Counts on how many occasions triples are seen, as windows are read.

    Args:
        pause_ms: pause after which a triple that is seen again is of another occasion.
    """

    def __init__(self, pause_ms: int) -> None:
        self._pause_ms = pause_ms
        self._seen: dict[Key, Recurrence] = {}

    def add(self, triples: Iterable[EpisodicTriple]) -> tuple[Key, ...]:
        """Count triples in order of time, and return what had another occasion, in order."""
        return tuple(dict.fromkeys(key for one in triples if (key := self._count(one))))

    def _count(self, one: EpisodicTriple) -> Key | None:
        key = key_of(one.triple)
        seen = self._seen.setdefault(key, Recurrence())
        again = not seen.evidence or one.span.start_ms - seen.last_ms >= self._pause_ms
        seen.objects[one.triple.object] += 1
        seen.last_ms = max(seen.last_ms, one.span.end_ms)
        seen.clip = max(seen.clip, one.clip)
        if not again:
            return None
        seen.evidence.append(one.clip)
        return key

    def lasting(self, keys: Iterable[Key], occasions: int) -> Iterator[SemanticTriple]:
        """Yield what of ``keys`` recurred on enough occasions and says something that lasts."""
        for key in keys:
            seen = self._seen[key]
            if (
                len(seen.evidence) >= occasions
                and key[1].removeprefix(NOT).partition(" ")[0] not in _TRANSIENT
            ):
                # The object is written as it mostly was.
                subject, predicate, _ = key
                written = max(seen.objects, key=lambda name: (seen.objects[name], -len(name), name))
                yield SemanticTriple(
                    triple=Triple(subject=subject, predicate=predicate, object=written),
                    evidence=tuple(seen.evidence),
                    from_clip=seen.clip,
                )


def consolidate_by_rules(
    lasting: Sequence[SemanticTriple], valid: Sequence[SemanticTriple], clip: int
) -> SemanticChange:
    """Close what lasting triples say again or contradict, and let them begin.

    Args:
        lasting: what recurred in this window, with its counts of all time.
        valid: all triples that are not closed.
        clip: from which on the change is known.
    """
    by_subject: dict[str, list[SemanticTriple]] = {}
    for one in valid:
        by_subject.setdefault(one.triple.subject, []).append(one)
    added: dict[Key, SemanticTriple] = {}
    for new in lasting:
        overtaken = [key for key, one in added.items() if contradicts(new.triple, one.triple)]
        for key in overtaken:
            del added[key]
        added[key_of(new.triple)] = new.model_copy(update={"from_clip": clip})
    closed = list[SemanticTriple]()
    seen: set[int] = set()
    for new in added.values():
        for old in by_subject.get(new.triple.subject, ()):
            same = says_same(new.triple, old.triple) or contradicts(new.triple, old.triple)
            if same and id(old) not in seen:
                seen.add(id(old))
                closed.append(old)
    return SemanticChange(
        closed=tuple(one.model_copy(update={"to_clip": clip}) for one in closed),
        added=tuple(added.values()),
    )


# Consolidation of new semantic triples with those like them, decided by a language model; pure.


class Consolidation(Frozen):
    """Which candidates a new triple replaces, by position, and how it reads then."""

    replaced: tuple[NonNegativeInt, ...] = ()
    triple: Triple


Consolidate = Callable[[Triple, Sequence[Triple]], Consolidation]
"""Decides on a new triple and the candidates that are like it, most alike first."""


def candidates_for(vector: Vectors, existing: Vectors, least: float, most: int) -> tuple[int, ...]:
    """Return the existing triples that a new one may replace, most alike first.

    Args:
        vector: (D,) of the new triple's text, unit.
        existing: (N, D) of the texts of all triples that are not closed, unit rows.
        least: cosine of a candidate.
    """
    cosines = existing @ vector
    order = np.argsort(-cosines, kind="stable")[:most]
    return tuple(int(number) for number in order if cosines[number] >= least)


def complaints_about(decision: Consolidation, candidates: int) -> list[str]:
    """Return what is wrong with a decision about so many candidates, for the model to repair."""
    unknown = sorted({number for number in decision.replaced if number >= candidates})
    numbers = ", ".join(map(str, unknown))
    return [f"there is no existing triple {numbers}: they are numbered from 0"] if unknown else []


def consolidate(
    new: SemanticTriple, candidates: Sequence[SemanticTriple], decide: Consolidate, clip: int
) -> SemanticChange:
    """Let a decision close what a new triple replaces.

    What it rests on is joined with that of the triples that say the same; a contradiction's
    evidence is not its own, but which it is only the decision knows: both are joined.

    Args:
        candidates: existing triples like it, most alike first.
        decide: the decision; not asked where there are no candidates.
        clip: from which on the change is known.

    Raises:
        ValueError: the decision replaces what is no candidate.
    """
    if not candidates:
        return SemanticChange(added=(new.model_copy(update={"from_clip": clip}),))
    decision = decide(new.triple, [one.triple for one in candidates])
    if wrong := complaints_about(decision, len(candidates)):
        raise ValueError(wrong[0])
    replaced = [candidates[number] for number in dict.fromkeys(decision.replaced)]
    evidence = dict.fromkeys(seen for one in (*replaced, new) for seen in one.evidence)
    joined = SemanticTriple(triple=decision.triple, evidence=tuple(evidence), from_clip=clip)
    closed = tuple(one.model_copy(update={"to_clip": clip}) for one in replaced)
    return SemanticChange(closed=closed, added=(joined,))
