"""The transcript of a video: its lines with who said them, a window at a time, and what is sought.

A long video has too many lines to load: a window is some clips around a moment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from domain.base import Frozen
from domain.memories import Memory, MemorySource
from domain.moments import Moment
from domain.people import tags_in_words
from domain.time import TimeSpan
from domain.words import make_storable, marked
from library.memory import shown_frame
from models.ports import TextEmbedder
from people.characters import ClipPeople, people_at
from retrieval.relevance import close_lines, embed_words
from store.database import Store
from store.queries.clips import memory_view
from store.queries.keyframes import frames_of
from store.queries.memories import (
    MARK_END,
    MARK_START,
    clips_around,
    lines_named,
    lines_of_clips,
    lines_with_words,
)

SAID, ON_SCREEN, SEEN, HEARD = marked("Said"), marked("On screen"), marked("Seen"), marked("Heard")
GROUPS = (SAID, ON_SCREEN, SEEN, HEARD)
"""What lines are grouped by."""
CHAPTER = marked("Chapter")
"""The group of the titles that the source itself has; they are headings, whatever is shown."""
GROUP_OF = {
    MemorySource.SAID: SAID,
    MemorySource.SUBTITLE: SAID,
    MemorySource.READ: ON_SCREEN,
    MemorySource.SEEN: SEEN,
    MemorySource.OBJECTS: SEEN,
    MemorySource.COLOURS: SEEN,
    MemorySource.CAPTION: SEEN,
    MemorySource.MODEL: SEEN,
    MemorySource.SOUND: HEARD,
    MemorySource.CHAPTER: CHAPTER,
}

WINDOW_CLIPS, CLIPS_BEFORE = 20, 4
"""Clips of a window, and how many of them come before the moment."""
MAX_LINES = 600
"""Lines of a window."""
MAX_SCENES = 40
"""Pictures of a window."""
MAX_FOUND, MAX_CLOSE = 40, 10
"""Lines that are shown of those with the words, and of those close in meaning."""
MAX_CANDIDATES = 200
"""Close lines of all groups among which those of the wanted groups are found."""

Mark = tuple[int, int]
"""Where a match begins and ends in a text, in characters."""


class TranscriptLine(Frozen):
    """A line; ``who`` is who said it, "" where nobody is known; ``marks`` are what matches."""

    id: int
    span: TimeSpan
    group: str
    who: str
    text: str
    marks: tuple[Mark, ...] = ()


class TranscriptWindow(Frozen):
    """The lines of some clips around a moment.

    It stands for every moment from ``from_ms`` to ``until_ms`` (None: to the end). ``earlier_ms``
    and ``later_ms`` are moments of the windows before and after it; None: there is none.
    """

    lines: tuple[TranscriptLine, ...]
    from_ms: int = 0
    until_ms: int | None = None
    earlier_ms: int | None = None
    later_ms: int | None = None


def load_transcript(
    store: Store, video: str, at_ms: int, groups: Collection[str]
) -> TranscriptWindow | None:
    """Return the window of a video around a moment; None before its first clip is remembered.

    Args:
        groups: those of ``GROUPS`` whose lines are returned.
    """
    with store.begin(snapshot=True) as session:
        scope = memory_view(session, [video]).scopes[0]
        around = clips_around(session, scope, at_ms, CLIPS_BEFORE, WINDOW_CLIPS)
        if around is None:
            return None
        first, last, before, after = around
        people = people_at(session, video, scope.last_clip)
        sources = sources_of(groups) | {MemorySource.CHAPTER}
        # One more than is shown, to know whether there are more.
        lines = lines_of_clips(session, scope, first, last, sources, MAX_LINES + 1)
    until_ms = after.start_ms if after else None
    if len(lines) > MAX_LINES:
        # The next window has those from where the last line begins, if that is later.
        last_ms = lines[-1].span.start_ms
        if last_ms <= at_ms:
            lines = lines[:-1]
        else:
            lines, until_ms = [line for line in lines if line.span.start_ms < last_ms], last_ms
    return TranscriptWindow(
        lines=tuple(shown_lines(lines, people)),
        from_ms=before.end_ms if before else 0,
        until_ms=until_ms,
        earlier_ms=before.start_ms if before else None,
        later_ms=until_ms,
    )


def load_scenes(store: Store, video: str, at_ms: int) -> list[Moment]:
    """Return the pictures of the window of a video around a moment, in order of time.

    They are ``MAX_SCENES`` at most, evenly chosen.
    """
    with store.begin(snapshot=True) as session:
        scope = memory_view(session, [video]).scopes[0]
        around = clips_around(session, scope, at_ms, CLIPS_BEFORE, WINDOW_CLIPS)
        if around is None:
            return []
        frames = frames_of(session, video, range(around[0], around[1] + 1))
        # Every nth, with n rounded up, so that there are never more.
        chosen = frames[:: max(1, -(-len(frames) // MAX_SCENES))]
        described = any(frame.description for frame in chosen)
        people = people_at(session, video, scope.last_clip) if described else ClipPeople()
    return [shown_frame(video, frame, people).in_words() for frame in chosen]


def find_words(
    store: Store, video: str, words: str, groups: Collection[str]
) -> tuple[list[TranscriptLine], int]:
    """Return the first lines of a video with all the words, marked, and how many there are."""
    words = make_storable(words)  # An address of the page may have any character.
    with store.begin(snapshot=True) as session:
        scope = memory_view(session, [video]).scopes[0]
        people = people_at(session, video, scope.last_clip)
        # A name stands for what that person says, and for the lines that have them.
        others, named = split_names(words, people)
        sources = sources_of(groups)
        found, total = lines_with_words(session, scope, others, named, sources, MAX_FOUND)
    sought = (others, *(name for name, _ in named))
    return [_with_marks(line, sought) for line in shown_lines(found, people)], total


def split_names(words: str, people: ClipPeople) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    """Split what is sought into words and the people whose whole names are in it, with tags."""
    named = [one for one in people.characters if one.name]
    found = list[tuple[str, tuple[str, ...]]]()
    # The longest first: a first name alone may be somebody else's.
    for person in sorted(named, key=lambda one: -len(one.name or "")):
        name = re.compile(rf"(?<!\w){re.escape(person.name or '')}(?!\w)", re.IGNORECASE)
        # Words in quotes are sought as they stand, names among them too.
        if '"' not in words and name.search(words):
            words = name.sub(" ", words)
            found.append((person.name or "", person.tags))
    return words.strip(), found


def find_close(
    store: Store,
    text: TextEmbedder,
    video: str,
    words: str,
    groups: Collection[str],
    known: Collection[int],
) -> tuple[TranscriptLine, ...]:
    """Return the lines of a video that are close to the words in meaning, the closest first.

    Those that are ``known`` by their ids are left out.
    """
    vector = embed_words(text, words)
    with store.begin(snapshot=True) as session:
        scope = memory_view(session, [video]).scopes[0]
        # Lines that are no closer than chance are left out.
        close = close_lines(session, text, [scope], vector, MAX_CANDIDATES)
        wanted = [number for number in close if number not in known]
        lines = lines_named(session, scope, wanted, sources_of(groups))
        shown = list(shown_lines(lines, people_at(session, video, scope.last_clip)))
    return tuple(sorted(shown, key=lambda line: wanted.index(line.id))[:MAX_CLOSE])


def sources_of(groups: Collection[str]) -> set[str]:
    return {str(source) for source, group in GROUP_OF.items() if group in groups}


def shown_lines(lines: Iterable[Memory], people: ClipPeople) -> Iterator[TranscriptLine]:
    """Yield lines of a video as readers see them, with names in place of tags."""
    for line in lines:
        plain, marks, start = "", list[Mark](), -1
        # The database marked what matches; names put in place of tags move the marks.
        for char in _in_words(line.text, people):
            if char == MARK_START:
                start = len(plain)
            elif char == MARK_END:
                if start >= 0:
                    marks.append((start, len(plain)))
                start = -1
            else:
                plain += char
        yield TranscriptLine(
            id=line.id,
            span=line.span,
            group=GROUP_OF[line.source],
            who=_in_words(people.label(line.speaker), people) if line.speaker else "",
            text=plain,
            marks=tuple(marks),
        )


def _in_words(text: str, people: ClipPeople) -> str:
    """Return a text with names in place of tags; people without one have their number."""
    return tags_in_words(people.display(text))


def _with_marks(line: TranscriptLine, sought: Iterable[str]) -> TranscriptLine:
    """Mark the first of these texts that a line without marks has as it is written."""
    for text in sought if not line.marks else ():
        start = line.text.casefold().find(text.casefold()) if text else -1
        if start >= 0:
            return line.model_copy(update={"marks": ((start, start + len(text)),)})
    return line
