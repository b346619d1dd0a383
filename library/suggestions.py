"""Questions about a video, suggested from its own memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from domain.base import Frozen
from domain.moments import Event
from domain.people import TAG
from domain.words import marked
from library.memory import events
from library.params import MAX_LIMIT
from library.people import people_of_video
from store.database import Store

MAX_SEGMENTS = 20
"""Segments of a video that suggestions are taken from: the first ones."""
MAX_LABEL_CHARS = 60
"""A longer label of a segment reads badly in a question."""
MIN_WORD_CHARS = 4
"""A shorter word of a label says too little of its topic."""
ON_SCREEN = "On screen:"


class SuggestedQuestion(Frozen):
    """A question, and the video that it is about.

    ``text`` is asked as it is, in English, which the local rules and text models are made for.
    """

    video: str
    text: str


def suggested_questions(
    store: Store, videos: Sequence[str], per_video: int = 2
) -> list[SuggestedQuestion]:
    """Return questions that the memory of these videos can answer, ``per_video`` of each at most.

    Raises:
        NotFound: there is no video of that id.
    """
    return [
        SuggestedQuestion(video=video, text=text)
        for video in videos
        for text in list(dict.fromkeys(_questions(store, video)))[:per_video]
    ]


def _questions(store: Store, video: str) -> Iterator[str]:
    """Yield questions about a named person first, then about topics, the longest first."""
    people = people_of_video(store, video, limit=MAX_LIMIT).items
    named = [person.label for person in people if person.names]
    yield from (marked(f"What does {name} say?") for name in named[:1] if not TAG.search(name))
    segments = events(store, video, limit=MAX_SEGMENTS).items
    for segment in sorted(segments, key=lambda one: -one.span.length_ms):
        yield from _about(segment)


def _about(segment: Event) -> Iterator[str]:
    """Yield a question about a segment: a label with commas is a list of its topic's words."""
    label = segment.label.strip()
    if TAG.search(label) or not label:
        return
    if "," not in label:
        if len(label) <= MAX_LABEL_CHARS:
            yield marked(f"What happens in \u201c{label}\u201d?")
        return
    # Words that were only read on screen may be misread; spoken ones make better questions.
    spoken = " ".join(
        line for line in segment.text.split(". ") if not line.startswith(ON_SCREEN)
    ).casefold()
    words = [word.strip() for word in label.split(",")]
    topics = [word for word in words if len(word) >= MIN_WORD_CHARS and word.casefold() in spoken]
    yield from (marked(f"What is said about {word.lower()}?") for word in topics[:1])
