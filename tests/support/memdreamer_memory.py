"""Hand-written MemDreamer memories, stored as its builder stores them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import update

from domain.built import Change, Entity, EntityKey, Node, Relation
from domain.time import TimeSpan
from store.database import Store
from store.queries.builds import StepMade, apply_change
from store.tables.schema import VideoRow
from strategies.memdreamer.levels import EVENT, GRAPH, MACRO, ROOT, SUPER, TEXT, VERTEX_KINDS
from tests.support.remembered import CLIP_MS, Said, WordEmbedder, name, watch

BUILDER = "memdreamer"
Tie = tuple[str, str, str]
"""Subject, label and object of an edge; a micro-event or text is named by its own text."""


@dataclass(frozen=True)
class Episode:
    """A macro event of some clips: what happens and is read in it, evenly spread, and its edges."""

    title: str
    summary: str
    clips: int
    happens: Sequence[str] = ()
    read: Sequence[str] = ()
    people: Sequence[str] = ()
    things: Sequence[str] = ()
    ties: Sequence[Tie] = ()


@dataclass(frozen=True)
class Part:
    """A super event: numbers of episodes, and what it leads to."""

    label: str
    text: str
    episodes: Sequence[int]


def span_of(first: int, clips: int) -> TimeSpan:
    return TimeSpan.of(first * CLIP_MS, (first + clips) * CLIP_MS)


def vertex(level: str, number: int) -> EntityKey:
    return EntityKey(VERTEX_KINDS[level], str(number))


class WrittenMemory:
    """Writes a memory of episodes, each in the step of its last clip.

    Args:
        store: the store.
        video: its id.
        episodes: in order of time; the first begins with the video.
    """

    def __init__(self, store: Store, video: str, episodes: Sequence[Episode]) -> None:
        self._store, self._video, self._episodes = store, video, episodes
        self._next = {EVENT: 0, TEXT: 0}
        self._embed = WordEmbedder().embed
        self._ends: dict[str, EntityKey] = {}

    def watch(self) -> None:
        """Add the video, each clip with a line."""
        lines = [[Said(one.title, 1)] for one in self._episodes for _ in range(one.clips)]
        watch(self._store, self._video, lines)
        with self._store.begin() as session:
            session.execute(update(VideoRow).where(VideoRow.id == self._video).values(state="done"))

    def write(self, parts: Sequence[Sequence[Part]], roots: Sequence[str]) -> None:
        """Store the episodes in order; after the n-th hold the n-th parts and root."""
        first = 0
        known: Sequence[Part] = ()
        for number, (episode, now, root) in enumerate(
            zip(self._episodes, parts, roots, strict=True)
        ):
            last = first + episode.clips - 1
            change = self._change(number, first, last, known, now, root)
            made = StepMade(last, 1, WordEmbedder.name)
            with self._store.begin() as session:
                apply_change(session, self._video, BUILDER, made, change)
            first, known = last + 1, now

    def _change(
        self,
        number: int,
        first: int,
        last: int,
        known: Sequence[Part],
        parts: Sequence[Part],
        root: str,
    ) -> Change:
        episode, span = self._episodes[number], span_of(first, last - first + 1)
        nodes = [self._node(MACRO, number, episode.title, episode.summary, span, last)]
        entities = [Entity(vertex(MACRO, number), last)]
        nodes += [*self._within(EVENT, episode.happens, span, last)]
        nodes += [*self._within(TEXT, episode.read, span, last)]
        entities += [Entity(self._ends[one.text], last) for one in nodes[1:]]
        named = [EntityKey("PERSON", who) for who in episode.people]
        named += [EntityKey("OBJECT", thing) for thing in episode.things]
        entities += [self._entity(key, span, last) for key in named]
        ends = self._ends | {key.name: key for key in named}
        stated = [
            Relation(GRAPH, ends[who], label, ends[what], span, last, (last,), (MACRO, number))
            for who, label, what in episode.ties
        ]
        tied = {end for who, _, what in episode.ties for end in (who, what)}
        stated += [
            Relation(GRAPH, key, "MENTIONED", key, span, last, (last,), (MACRO, number))
            for key in named
            if key.name not in tied
        ]
        supers = [*self._supers(parts, known, last)]
        entities += [Entity(vertex(SUPER, n), last) for n in range(len(parts))]
        children = tuple(range(len(parts)))
        nodes += [*supers, self._node(ROOT, 0, "A day", root, span_of(0, last + 1), last, children)]
        stated += [
            Relation(SUPER, vertex(SUPER, n), "BEFORE", vertex(SUPER, n + 1), span, last)
            for n in range(max(0, len(known) - 1), len(parts) - 1)
        ]
        return Change(nodes, entities, stated)

    def _supers(self, parts: Sequence[Part], known: Sequence[Part], last: int) -> Iterable[Node]:
        for number, part in enumerate(parts):
            if number < len(known) and known[number] == part:
                continue
            starts = [sum(e.clips for e in self._episodes[:n]) for n in part.episodes]
            ends = [
                start + self._episodes[n].clips
                for start, n in zip(starts, part.episodes, strict=True)
            ]
            span = span_of(starts[0], ends[-1] - starts[0])
            yield self._node(SUPER, number, part.label, part.text, span, last, tuple(part.episodes))

    def _within(
        self, level: str, texts: Sequence[str], span: TimeSpan, last: int
    ) -> Iterable[Node]:
        for position, text in enumerate(texts):
            start = span.start_ms + span.length_ms * position // len(texts)
            number = self._next[level]
            self._next[level] += 1
            self._ends[text] = vertex(level, number)
            yield self._node(level, number, "", text, TimeSpan.of(start, start + 5_000), last)

    def _entity(self, key: EntityKey, span: TimeSpan, last: int) -> Entity:
        text = f"{key.name} of the {key.type.lower()}s"
        attributes = {"description": text, "best_ms": span.start_ms}
        return Entity(key, last, attributes, self._embed([f"{key.name}. {text}"])[0])

    def _node(
        self,
        level: str,
        number: int,
        label: str,
        text: str,
        span: TimeSpan,
        clip: int,
        children: tuple[int, ...] = (),
    ) -> Node:
        vector = self._embed([f"{label}. {text}"])[0]
        return Node(level, number, text, span, clip, label, children, vector)


HOUSE = "0a1b2c3d4e5f6071"
EPISODES = (
    Episode(
        "Breakfast in the kitchen",
        "<face_1> makes tea while Bob reads the newspaper at the table.",
        4,
        happens=("<face_1> boils water in the kettle", "Bob reads the newspaper"),
        read=("DAILY NEWS",),
        people=("<face_1>", "Bob"),
        things=("kettle", "newspaper", "balcony"),
        ties=(
            ("<face_1>", "PERFORMS", "<face_1> boils water in the kettle"),
            ("kettle", "USES_TOOL", "<face_1> boils water in the kettle"),
            ("Bob", "PERFORMS", "Bob reads the newspaper"),
            ("newspaper", "USES_TOOL", "Bob reads the newspaper"),
            ("<face_1> boils water in the kettle", "BEFORE", "Bob reads the newspaper"),
            ("DAILY NEWS", "ANNOTATES", "newspaper"),
        ),
    ),
    Episode(
        "Repairing the bicycle",
        "Bob repairs the red bicycle in the yard with a wrench.",
        4,
        happens=("Bob turns a bolt with the wrench", "Bob rides the red bicycle"),
        people=("Bob",),
        things=("wrench", "bicycle"),
        ties=(
            ("Bob", "PERFORMS", "Bob turns a bolt with the wrench"),
            ("wrench", "USES_TOOL", "Bob turns a bolt with the wrench"),
            ("Bob", "PERFORMS", "Bob rides the red bicycle"),
            ("Bob turns a bolt with the wrench", "CAUSES", "Bob rides the red bicycle"),
        ),
    ),
    Episode(
        "Painting the fence",
        "Carla paints the garden fence white.",
        4,
        happens=("Carla opens a tin of paint", "Carla paints the garden fence"),
        people=("Carla",),
        things=("fence",),
        ties=(("Carla", "PERFORMS", "Carla paints the garden fence"),),
    ),
    Episode(
        "Dinner with guests",
        "Everybody eats soup, and Carla sings an old song.",
        4,
        happens=("The guests eat soup", "Carla sings an old song"),
        people=("Carla",),
        things=("soup",),
        ties=(("Carla", "PERFORMS", "Carla sings an old song"),),
    ),
)
MORNING = Part("A morning of tea", "The morning begins with tea.", (0,))
WHOLE_MORNING = Part(
    "A morning at home",
    "Tea is made, then a bicycle is repaired.\nmacro 0 ENABLES macro 1: tea wakes Bob up",
    (0, 1),
)
AFTERNOON = Part("An afternoon outside", "A fence is painted white.", (2,))
EVENING = Part(
    "Painting and dinner",
    "A fence is painted, then guests eat.\nCONTRASTS_WITH super 0: it is loud instead of calm",
    (2, 3),
)
PARTS = ((MORNING,), (WHOLE_MORNING,), (WHOLE_MORNING, AFTERNOON), (WHOLE_MORNING, EVENING))
ROOTS = (
    "A quiet morning.",
    "A morning of tea and repairs.",
    "A day of repairs and paint.\nThemes: home; work\nTone: calm",
    "A day at home that ends with guests.\nThemes: home; friends\nTone: merry",
)


def write_house(store: Store) -> None:
    """A day in a house: four macro events of two minutes in two super events."""
    memory = WrittenMemory(store, HOUSE, EPISODES)
    memory.watch()
    memory.write(PARTS, ROOTS)
    name(store, HOUSE, 1, "Ann", "<face_1>")


TWO_HOURS = "1f2e3d4c5b6a7080"
MACROS, MINUTES, A_SUPER = 24, 5, 3
WORDS = "somebody walks slowly through the long corridor and looks for the old brass key while"


def _busy_episode(number: int) -> Episode:
    """Five minutes full of events, people and things, each with a mark of its own."""
    mark = iter(range(1_000 * (number + 1), 1_000 * (number + 2)))
    happens = [f"MARK{next(mark):05} {WORDS} the clock strikes {n}" for n in range(30)]
    people = [f"Guest {number}-{n} MARK{next(mark):05}" for n in range(6)]
    things = [f"Thing {number}-{n} MARK{next(mark):05}" for n in range(10)]
    ties = [(people[n % 6], "PERFORMS", one) for n, one in enumerate(happens)]
    ties += [(things[n % 10], "USES_TOOL", one) for n, one in enumerate(happens)]
    ties += [(before, "BEFORE", after) for before, after in pairwise(happens)]
    summary = f"MARK{next(mark):05} " + " ".join([WORDS] * 8)
    read = [f"MARK{next(mark):05} exit {n}" for n in range(4)]
    title = f"Search {number} MARK{next(mark):05}"
    return Episode(title, summary, 2 * MINUTES, happens, read, people, things, ties)


def write_two_hours(store: Store) -> str:
    """Two hours of 24 macro events in 8 super events, as long as a model writes them."""
    memory = WrittenMemory(store, TWO_HOURS, [_busy_episode(number) for number in range(MACROS)])
    memory.watch()
    text = " ".join([WORDS] * 12)
    parts = [
        [
            Part(f"Hunt {first}", text, tuple(range(first, min(first + A_SUPER, known + 1))))
            for first in range(0, known + 1, A_SUPER)
        ]
        for known in range(MACROS)
    ]
    memory.write(parts, [f"{' '.join([WORDS] * 6)}\nThemes: keys; clocks\nTone: tense"] * MACROS)
    return TWO_HOURS
