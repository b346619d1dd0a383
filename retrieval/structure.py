"""Sentences about how a video is built: who is in it and speaks when, how it begins and ends.

Each is worded with its times and cites the lines that show it, so that it is evidence like any
other line. Which of them a question asks for is decided by ``structure_questions``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from domain.asking import LIKELY, TOLD
from domain.memories import PRESENCE_SOURCES, MemorySource, Scope
from domain.people import TAG, CharacterRef
from domain.sentences import labels_of_kind, things_on
from domain.time import TimeSpan, format_clock
from domain.words import one_line
from models.ports import TextEmbedder
from models.sentences import SentenceParser
from people.across_videos import person_links
from retrieval.chapters import TopicLine, Word, chapters
from retrieval.heuristics.questions import Asks
from retrieval.lines import LineSet, ViewLine
from retrieval.people_in_query import ViewPerson, line_text, with_names
from retrieval.query_context import QueryContext
from retrieval.terms import terms
from store.database import Store
from store.queries.characters import characters_in_view
from store.queries.identities import last_appearances
from store.queries.outline import began_times
from store.queries.videos import video_titles

CHOSEN = 0.65
"""The score of a summary, which is chosen by rules; what a small detector saw is ``LIKELY``."""
GAP_MS = 3_000
"""Times with a shorter gap between them are told as one."""
TIMES, PEOPLE = 4, 8
"""Times told of a person, and people told, at most."""
BRIEF_MS, BRIEF_SHARE = 2_000, 0.25
"""Who is seen for less than this, and less than this share of the longest time that anybody is
seen, and is never heard, may be a picture or a false detection."""
EDGE_SHARE, EDGE_MS, EDGE_MOST_MS = 0.05, 10_000, 60_000
"""Length of the beginning and of the end: a share of the video, within these limits."""
SENTENCES, FEW_WORDS = 2, 8
"""Sentences of speech told of the beginning or end, and words below which one more is."""
FEW_CHAPTERS = 3
"""Chapters of which two sentences each are told; of more, one."""
READ_LINES = 600
"""Lines that chapters are told from, at most."""
TITLE = 80
"""Characters of a title, which anybody may have written."""
THINGS = 3
"""Moments told of things that were recognised."""
PERSON = "person"
_COUNTED = re.compile(r"\b(\d+) people\b")


class Told(NamedTuple):
    """A sentence about structure, the lines that show it, the one to cite first, and its score."""

    text: str
    rows: tuple[ViewLine, ...]
    sure: float = TOLD


class Present(NamedTuple):
    """A person with the lines in which they are seen and heard, in the order of time."""

    person: ViewPerson
    seen: tuple[ViewLine, ...]
    heard: tuple[ViewLine, ...]

    @property
    def label(self) -> str:
        character = self.person.character
        first = (self.seen or self.heard)[0].line
        tags = [tag for tag in self.person.tags if tag in (first.speaker or "") + first.text]
        return character.shown(tags[0] if tags else character.tag)

    @property
    def seen_ms(self) -> int:
        """For how long the person is seen."""
        return sum(span.end_ms - span.start_ms for span in _merged(self.seen))

    def told(self, *, seen: bool = True) -> str:
        """Name the person with the times."""
        times = [("seen", self.seen if seen else ()), ("heard", self.heard)]
        worded = [f"{how} {_times(rows)}" for how, rows in times if rows]
        return f"{self.label} ({', '.join(worded)})"


def tell(context: QueryContext, asks: Asks) -> Told | None:
    """Return what lines of one video tell of its structure; None if they tell nothing of it."""
    return _TELLERS[asks](context) if context.rows and asks in _TELLERS else None


def present(context: QueryContext) -> list[Present]:
    """Return the people of the view: seen ones first, by falling duration."""
    shown = [row for row in context.rows if row.presence]
    spoken = [row for row in context.rows if row.spoken and row.line.speaker]
    found = []
    for person in context.people.people:
        tags = frozenset(person.tags)
        names = tags | ({person.character.name, *person.character.aliases} - {None})
        seen = [r for r in shown if tags & {match[0] for match in TAG.finditer(r.line.text)}]
        heard = [r for r in spoken if r.line.speaker in names]
        mine = [tuple(r for r in rows if r.video == person.video) for rows in (seen, heard)]
        found.append(Present(person, mine[0], mine[1]))
    known = [one for one in found if one.seen or one.heard]
    return sorted(known, key=lambda one: (-one.seen_ms, one.person.character.number))


def _people(context: QueryContext) -> Told | None:
    """Tell who is seen, who only briefly, and whose voice has no face."""
    everybody = present(context)
    longest = max((one.seen_ms for one in everybody), default=0)
    brief = [
        one
        for one in everybody
        if one.seen and not one.heard and one.seen_ms < min(BRIEF_MS, BRIEF_SHARE * longest)
    ]
    seen = [one for one in everybody if one.seen and one not in brief]
    voices = [one for one in everybody if not one.seen]
    if not seen:
        return _speakers(context)
    # By the faces that were detected, or the people counted as objects: not each has a line.
    objects = (row.line.text for row in context.rows if row.line.source == MemorySource.OBJECTS)
    counted = [int(number) for text in objects for number in _COUNTED.findall(text)]
    together = max([1, context.faces_together(), *counted])
    number = "1 person is" if len(seen) == 1 else f"{len(seen)} people are"
    apart = f" (told apart by their faces; at most {together} at one time)"
    text = [f"{number} seen{apart if len(seen) > together else ''}: {_listed(seen)}."]
    if brief:
        text.append(f"Perhaps {len(brief)} more, seen only briefly: {_listed(brief)}.")
    if voices:
        text.append(f"Heard, but not tied to a face: {_listed(voices)}.")
    rows = [row for one in (*seen, *voices, *brief) for row in (one.seen[:1] + one.heard[:1])]
    return Told(" ".join(text), tuple(rows))


def _speakers(context: QueryContext) -> Told | None:
    """Tell who speaks when; of the people that the question names only, if it names some."""
    heard = [one for one in present(context) if one.heard]
    named = [one for one in heard if one.person in context.people.named_in(context.query)]
    if not heard:
        return None
    if named:
        text = " ".join(f"{one.label} speaks at {_times(one.heard)}." for one in named)
        return Told(
            text,
            tuple(
                max(one.heard, key=lambda row: row.line.end_ms - row.line.start_ms) for one in named
            ),
        )
    heard.sort(key=lambda one: one.heard[0].line.start_ms)
    number = "1 voice is" if len(heard) == 1 else f"{len(heard)} voices are"
    text = "; ".join(one.told(seen=False) for one in heard[:PEOPLE])
    more = f"; and {len(heard) - PEOPLE} more" if len(heard) > PEOPLE else ""
    return Told(f"{number} heard: {text}{more}.", tuple(one.heard[0] for one in heard))


def _edge(context: QueryContext, *, last: bool) -> Told | None:
    """Tell the first or last sentences, the text on screen and who is seen there."""
    video = context.rows[-1 if last else 0].video
    rows = [row for row in context.rows if row.video == video and not row.names_somebody]
    if not rows:
        return None
    start, end = rows[0].line.start_ms, max(row.line.end_ms for row in rows)
    reach = min(EDGE_MOST_MS, max(EDGE_MS, EDGE_SHARE * (end - start)))

    def near(row: ViewLine) -> bool:
        return row.line.end_ms >= end - reach if last else row.line.start_ms <= start + reach

    ordered = sorted(rows, key=(lambda r: -r.line.end_ms) if last else (lambda r: r.line.start_ms))
    known = {row.number: row for row in rows}
    told: list[ViewLine] = []
    sentences = 0
    for row in ordered:
        content = row.spoken or row.described or row.line.source == MemorySource.CHAPTER
        words = sum(len(one.line.text.split()) for one in told)
        if not content or row in told or (told and not near(row)):
            continue
        if sentences >= SENTENCES and words >= FEW_WORDS:
            break
        numbers = complete_sentences(context.all_lines, row.number) if row.spoken else ()
        told += [known[n] for n in numbers or (row.number,) if n in known]
        sentences += 1
    read = [row for row in ordered if row.line.source == MemorySource.READ and near(row)][:1]
    seen = [row for row in ordered if row.line.source in PRESENCE_SOURCES and near(row)]
    told += [*read, *[row for row in seen if not row.described][:1]]
    told = list({row.number: row for row in told}.values()) or ordered[:1]
    cited = sorted(told, key=lambda row: -row.line.end_ms if last else row.line.start_ms)
    quoted = sorted(told, key=lambda row: (row.line.start_ms, row.line.id))
    return Told(f"It {'ends' if last else 'begins'} with: {_quoted(context, quoted)}", tuple(cited))


def _things(context: QueryContext) -> Told | None:
    """Tell what was detected on the images, of the kind that the question names if it names one."""
    labels = labels_of_kind(context.query)
    rows = []
    for row in context.rows:
        things = things_on(row.line.text) if row.line.source == MemorySource.OBJECTS else {}
        wanted = labels or things.keys() - {PERSON}
        named = [phrase for label, phrase in things.items() if label in wanted]
        rows += [(row, ", ".join(named))] if named else []
    if not rows:
        return None
    cosines = context.all_lines.cosines(context.vectors.question[None])[0]
    rows.sort(key=lambda pair: (-float(cosines[pair[0].number]), pair[0].line.start_ms))
    text = "; ".join(f"{phrases} [{row.span}]" for row, phrases in rows[:THINGS])
    shown = tuple(row for row, _ in rows[:THINGS])
    return Told(f"Recognised on the images: {text}.", shown, LIKELY)


_TELLERS: dict[Asks, Callable[[QueryContext], Told | None]] = {
    Asks.PEOPLE: _people,
    Asks.SPEAKERS: _speakers,
    Asks.BEGINNING: lambda context: _edge(context, last=False),
    Asks.END: lambda context: _edge(context, last=True),
    Asks.THINGS: _things,
}


def chapters_told(
    context: QueryContext,
    parser: SentenceParser,
    encoder: TextEmbedder,
    *,
    summary: bool,
    word: Word | None = None,
) -> Told | None:
    """Tell what one video is about, by a sentence or two of each chapter; or name its chapters.

    Of a long video some lines are read, evenly: parsing takes longer than anybody waits.
    """
    rows = [row for row in context.rows if not (row.names_somebody or row.presence)]
    rows = rows[:: len(rows) // READ_LINES + 1]
    if not rows:
        return None
    lines = [TopicLine(row.span, row.line.text, row.line.source) for row in rows]
    whole = TimeSpan.of(0, max(row.line.end_ms for row in rows) + 1)
    vectors = (
        context.all_lines.arrays.vectors[[row.number for row in rows]]
        if context.text.name == encoder.name
        else encoder.embed([row.line.text for row in rows])
    )
    found = chapters(whole, lines, vectors, parser, encoder.embed, word=word)
    names = context.people.names(rows[0].video)
    most = 1 if len(found) > FEW_CHAPTERS else 2
    if summary:
        quoted = [
            (f"[{one.span if one.worded else rows[number].span}] {text}", rows[number])
            for one in found
            for text, number in [*zip(one.summary, one.quoted, strict=True)][:most]
        ]
        named = ", ".join(one.name for one in found)
        text = " ".join([f"{named}.", *(text for text, _ in quoted)])
        shown = tuple(row for _, row in quoted)
    else:
        text = "; ".join(f"{format_clock(one.span.start_ms)} {one.name}" for one in found) + "."
        shown = tuple(rows[(one.quoted or one.lines)[0]] for one in found if one.lines)
    return Told(with_names(text, names), shown, CHOSEN) if shown else None


class LastSeen(NamedTuple):
    """Where a person was last seen, or heard if never seen, in words and in which clips."""

    text: str
    scope: Scope
    span: TimeSpan


def last_seen(
    store: Store, scopes: Sequence[Scope], people: Iterable[ViewPerson]
) -> list[LastSeen]:
    """Return where people were last seen, in all videos of the view that they are joined across.

    The latest comes first: by the time of day, or of a file by when it was added.
    """
    in_view = {scope.video: scope for scope in scopes}
    found = []
    with store.begin(snapshot=True) as session:
        links = person_links(session)
        wanted = {
            links.person_of(CharacterRef(video=one.video, number=one.character.number)): (
                one.character.label
            )
            for one in people
        }
        titles = video_titles(session)
        for person, label in wanted.items():
            places = [ref for ref in person if ref.video in in_view]
            began = began_times(session, sorted({ref.video for ref in places}))
            for video, span, seen in _appearances(session, in_view, places):
                how = "seen" if seen else "heard"
                title = one_line(titles[video])[:TITLE].replace('"', "'")
                text = f'{label} was last {how} at {span} of "{title}".'
                order = (person, (seen, began[video].moment(span.end_ms), span.end_ms))
                found.append((order, LastSeen(text, in_view[video], span)))
    newest = {person: max(o for (p, o), _ in found if p == person) for (person, _), _ in found}
    best = [(order[1], one) for (person, order), one in found if newest[person] == order]
    return [one for _, one in sorted(best, key=lambda pair: pair[0], reverse=True)]


def _appearances(
    session: Session, in_view: dict[str, Scope], places: Sequence[CharacterRef]
) -> Iterable[tuple[str, TimeSpan, bool]]:
    """Yield for each identity of a person the video, when it was last there, and if it was seen."""
    people = characters_in_view(session, [in_view[video] for video in {p.video for p in places}])
    for place in places:
        of_place = (c for c in people[place.video] if c.character.number == place.number)
        members = [row for character in of_place for row in character.members]
        last_clip = in_view[place.video].last_clip
        for _, span, seen in last_appearances(session, members, last_clip).values():
            yield place.video, span, seen


def mention(context: QueryContext, subject: str, *, last: bool, said: bool) -> Told | None:
    """Tell when something is first or last there, or ``said``: by all words of the subject."""
    people = {tag for one in context.people.named_in(subject) for tag in one.tags}
    words, hits = set(terms(subject)), []
    for row in context.rows:
        own = set(terms(row.line.text))
        # A name may go on in the next line.
        starts = words & own and row.spoken
        numbers = complete_sentences(context.all_lines, row.number) if starts else ()
        after = (context.all_lines.line(n)[1].text for n in numbers if n > row.number)
        named = words & own and words <= own | set(terms(" ".join(after)))
        named = named or any(tag in row.line.text for tag in people)
        if named and not row.names_somebody and not (said and row.presence):
            hits.append(row)
    if not hits:
        return None
    row = hits[-1 if last else 0]
    at = format_clock(row.line.start_ms)
    return Told(f"{'Last' if last else 'First'} at {at}: {_quoted(context, [row])}", (row,))


def beside(context: QueryContext, number: int, *, before: bool) -> Told | None:
    """Tell what is said or described right after the sentence of a line, or before it."""
    known = {row.number: row for row in context.rows if row.spoken or row.described}
    if number not in known:
        return None
    sentence = complete_sentences(context.all_lines, number)
    anchor = [known[n] for n in sentence if n in known]
    rows = [row for row in known.values() if row.video == anchor[0].video]
    others = [
        row
        for row in rows
        if row not in anchor and (row.line.start_ms < anchor[0].line.start_ms) == before
    ]
    if not others:
        return None
    nearest = (max if before else min)(others, key=lambda row: (row.line.start_ms, row.line.id))
    numbers = complete_sentences(context.all_lines, nearest.number) if nearest.spoken else ()
    group = [
        known[n] for n in numbers or (nearest.number,) if n in known and known[n] not in anchor
    ]
    side = "Before" if before else "After"
    text = f"{side} {_quoted(context, anchor).rstrip('.')} comes: {_quoted(context, group)}"
    return Told(text, (*group, *anchor))


def _quoted(context: QueryContext, rows: Sequence[ViewLine]) -> str:
    """Quote lines in order, those of one sentence after one time."""
    parts: list[str] = []
    for before, row in zip([None, *rows], rows, strict=False):
        text = line_text(row.line, context.people.names(row.video))
        goes_on = before is not None and before.spoken and row.spoken
        same = goes_on and before is not None and before.line.speaker == row.line.speaker
        parts.append(row.line.text.strip() if same else f"[{row.span}] {text}")
    return " ".join(parts)


def _listed(people: Sequence[Present]) -> str:
    more = len(people) - PEOPLE
    return "; ".join(one.told() for one in people[:PEOPLE]) + (f"; and {more} more" * (more > 0))


def _times(rows: Sequence[ViewLine]) -> str:
    spans = _merged(rows)
    more = len(spans) - TIMES
    times = ", ".join(str(span) for span in spans[:TIMES])
    return f"{times} and {more} more times" if more > 0 else times


def _merged(rows: Sequence[ViewLine]) -> list[TimeSpan]:
    """Return the times of lines; those that overlap or nearly touch as one."""
    merged: list[TimeSpan] = []
    for span in sorted((row.span for row in rows), key=lambda span: span.start_ms):
        if merged and span.start_ms - merged[-1].end_ms <= GAP_MS:
            merged[-1] = merged[-1].union(span)
        else:
            merged.append(span)
    return merged


# Whole sentences of lines: speech recognition cuts at pauses, also within sentences.


REACH = 3
"""Maximum number of lines that are joined in either direction."""
SENTENCE_PAUSE_MS = 2_000
"""A longer silence ends a sentence."""
SHORT = 5
"""A sentence of fewer words goes with the next one."""

SPOKEN = ("said", "subtitle")
"""Sources whose sentences continue from line to line."""

_ENDS = re.compile(r"[.!?…。！？][\"'”’)\]」』]*$")


def complete_sentences(line_set: LineSet, line: int) -> tuple[int, ...]:
    lines = [line]
    while len(lines) <= REACH and _continues(
        line_set, before := _adjacent(line_set, lines[0], -1), lines[0]
    ):
        lines.insert(0, before)
    maximum = len(lines) + REACH
    while len(lines) < maximum and _continues(
        line_set, lines[-1], after := _adjacent(line_set, lines[-1], 1)
    ):
        lines.append(after)
    last = _adjacent(line_set, lines[-1], 1)
    words = sum(len(line_set.line(number)[1].text.split()) for number in lines)
    if words < SHORT and _same_speech(line_set, lines[-1], last):
        lines.append(last)
    return tuple(lines)


def _adjacent(line_set: LineSet, line: int, step: int) -> int:
    """Return the next line in a direction; speech skips its subtitles and vice versa."""
    source, number = line_set.line(line)[1].source, line + step
    other = next((name for name in SPOKEN if name != source), "") if source in SPOKEN else ""
    while 0 <= number < line_set.line_count and line_set.line(number)[1].source == other:
        number += step
    return number


def _continues(line_set: LineSet, first: int, second: int) -> bool:
    """Check whether a sentence of line ``first`` continues in line ``second``."""
    if not _same_speech(line_set, first, second):
        return False
    return not _ENDS.search(line_set.line(first)[1].text.strip())


def _same_speech(line_set: LineSet, first: int, second: int) -> bool:
    """Check whether both lines are from one speaker and source, without a long pause."""
    if first < 0 or second >= line_set.line_count:
        return False
    (video, before), (source, after) = line_set.line(first), line_set.line(second)
    return (
        video == source
        and before.source == after.source
        and before.source in SPOKEN
        and before.speaker == after.speaker
        and after.start_ms - before.end_ms <= SENTENCE_PAUSE_MS
    )
