"""What a language model replies when it writes MemDreamer's hierarchy; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from domain.people import TAG
from strategies.memdreamer.levels import MACRO, MACRO_VERTEX, SUPER, SUPER_VERTEX, is_allowed

LONGEST_NAME, LONGEST_TEXT = 120, 4_000
"""Most characters of a name or label, and of a text."""
MOST_ENTITIES, MOST_EVENTS, MOST_EDGES = 100, 100, 300
"""Most that is taken of one reply."""

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class WrittenEpisode(BaseModel):
    """An episode, by the numbers of its lines."""

    first: int
    last: int
    label: str
    summary: str


class WrittenEpisodes(BaseModel):
    """The complete episodes of a window, in order."""

    episodes: list[WrittenEpisode]

    def complaints(self, texts: Sequence[str], *, ended: bool) -> list[str]:
        """Return what the model is asked to put right, given the lines of the window."""
        ranges = [(one.first, one.last) for one in self.episodes]
        wrong = run_complaints(ranges, range(len(texts)), "lines", whole=ended)
        known = tags_in(texts)
        for one in self.episodes:
            wrong += text_complaints(one.label, LONGEST_NAME, "a label")
            wrong += text_complaints(one.summary, LONGEST_TEXT, "a summary")
            wrong += made_up([one.label, one.summary], known)
        return list(dict.fromkeys(wrong))


class EpisodeEntity(BaseModel):
    """A person, thing, place or group."""

    name: Name
    kind: Literal["PERSON", "OBJECT", "LOCATION", "GROUP"]
    description: str = ""
    best: int = 0  # The line at which it is seen best.


class EpisodeEvent(BaseModel):
    """What happens in some lines."""

    type: Name
    first: int
    last: int
    subject: str = ""
    object: str = ""
    description: Name


class EpisodeEdge(BaseModel):
    """An edge between entities, events and texts."""

    subject: Name
    label: Name
    object: Name


class WrittenGraph(BaseModel):
    """The graph of an episode."""

    entities: list[EpisodeEntity]
    events: list[EpisodeEvent]
    edges: list[EpisodeEdge]


class WrittenSuper(BaseModel):
    """A super event, by the numbers of its episodes."""

    first: int
    last: int
    label: str
    description: str


class WrittenReason(BaseModel):
    """An edge with its reason; the ends are numbers."""

    subject: int
    label: Name
    object: int
    reason: str

    @property
    def key(self) -> tuple[int, str, int]:
        """The edge without its reason."""
        return self.subject, self.label.upper(), self.object


class WrittenSupers(BaseModel):
    """Super events, and edges in and between them."""

    supers: list[WrittenSuper]
    inner: list[WrittenReason] = Field(default=[], description="between episodes of one")
    outer: list[WrittenReason] = Field(default=[], description="between super events")

    def complaints(
        self, numbers: Sequence[int], texts: Iterable[str], most: int, before: int | None
    ) -> list[str]:
        """Return what the model is asked to put right.

        Args:
            most: episodes of a super event.
            before: the number of the super event before, if there is one.
        """
        ranges = [(one.first, one.last) for one in self.supers]
        wrong = run_complaints(ranges, numbers, "episodes", whole=True)
        if any(last - first >= most for first, last in ranges):
            wrong.append(f"a super event has {most} episodes at most")
        known = tags_in(texts)
        for one in self.supers:
            wrong += text_complaints(one.label, LONGEST_NAME, "a label")
            wrong += text_complaints(one.description, LONGEST_TEXT, "a description")
            wrong += made_up([one.label, one.description], known)
        inner, outer = self.edges([(a, b) for a, b in ranges if a <= b], before)
        for edge in self.inner:
            if edge.key not in inner:
                wrong.append(f"inner: {edge.key} joins no episodes of one super event so")
        for edge in self.outer:
            if edge.key not in outer:
                wrong.append(f"outer: {edge.key} joins no super events so")
        return list(dict.fromkeys(wrong))

    def edges(
        self, ranges: Sequence[tuple[int, int]], before: int | None
    ) -> tuple[dict[tuple[int, str, int], str], dict[tuple[int, str, int], str]]:
        """Return the sound edges in super events of these ranges, and those between them."""
        firsts = {first for first, _ in ranges}
        inner = {
            edge.key: one_line(edge.reason)
            for edge in self.inner[:MOST_EDGES]
            if any(a <= edge.subject <= b and a <= edge.object <= b for a, b in ranges)
            and _joins(MACRO, MACRO_VERTEX, edge)
        }
        outer = {
            edge.key: one_line(edge.reason)
            for edge in self.outer[:MOST_EDGES]
            if edge.subject in firsts
            and edge.object in firsts | {before}
            and _joins(SUPER, SUPER_VERTEX, edge)
        }
        return inner, outer


class WrittenRoot(BaseModel):
    """What the whole video is about."""

    title: str
    description: str
    themes: list[str]
    tone: str = ""

    def complaints(self, texts: Iterable[str]) -> list[str]:
        """Return what the model is asked to put right, given the super events."""
        wrong = text_complaints(self.title, LONGEST_NAME, "the title")
        wrong += text_complaints(self.description, LONGEST_TEXT, "the description")
        written = [self.title, self.description, self.tone, *self.themes]
        return [*wrong, *made_up(written, tags_in(texts))]


def _joins(level: str, vertex: str, edge: WrittenReason) -> bool:
    _, label, _ = edge.key
    reasoned = label != "BEFORE" and edge.subject != edge.object and bool(one_line(edge.reason))
    return reasoned and is_allowed(level, vertex, label, vertex)


def run_complaints(
    ranges: Sequence[tuple[int, int]], numbers: Sequence[int], what: str, *, whole: bool
) -> list[str]:
    """Return what is wrong with runs of numbers that are to follow each other without gaps.

    Args:
        ranges: the first and last number of each run.
        numbers: those that there are, each one more than the one before.
        whole: whether the runs are to go on to the last number.
    """
    if not ranges:
        return ["there is none: there is at least one"]
    wrong = []
    expected = numbers[0]
    for first, last in ranges:
        if first != expected or last < first or last > numbers[-1]:
            wrong.append(
                f"{what} {first} to {last}: runs follow each other without gaps or overlaps, "
                f"from {numbers[0]} on, up to {numbers[-1]} at most; here {expected} is the first"
            )
        expected = last + 1
    if whole and not wrong and expected != numbers[-1] + 1:
        wrong.append(f"the last run ends with {numbers[-1]}")
    return wrong


def text_complaints(text: str, longest: int, what: str) -> list[str]:
    """Return what is wrong with a text: it is empty, or too long."""
    if not one_line(text):
        return [f"{what} is empty"]
    return [f"{what} is longer than {longest} characters"] if len(text) > longest else []


def made_up(texts: Iterable[str], known: Collection[str]) -> list[str]:
    """Complain about tags of people that nobody goes by."""
    return [f"nobody goes by {tag}" for tag in sorted(tags_in(texts) - set(known))]


def tags_in(texts: Iterable[str]) -> set[str]:
    """Return the tags of people in texts."""
    return {match[0] for text in texts for match in TAG.finditer(text)}


def one_line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def short(text: str, words: int) -> str:
    """Return the first words of a label."""
    return " ".join(text.split()[:words])[:LONGEST_NAME]
