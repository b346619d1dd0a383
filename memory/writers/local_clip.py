"""The clip writer without a language model: what was said, read and seen, by whom and when.

Nothing is inferred. Every line is a quotation or a plain statement of what was recognised, with
its source; the only semantic lines are names that the clip itself says or shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from domain.media import Group, IdentityKind, Percept, ScreenText, Utterance
from domain.memories import ClipMemories, MemoryDraft, MemoryKind, Source
from domain.people import Identity, IdentityStatement
from domain.time import TimeSpan
from memory.evidence import speaking_alone, visible
from memory.names import introduced, plates
from memory.people import People
from memory.sentences import pieces
from memory.writers.port import ClipContext

READ_MS = 1_000
"""A text read on a keyframe is taken to stand for this long."""

READ_SCORE = 0.6
"""Text read with less certainty is not remembered."""


class LocalClipWriter:
    """Composes the memories of a clip from its percept; see the module."""

    name = "local"
    source = ""
    wants_context = False

    def write(
        self,
        percept: Percept,
        people: People,
        context: ClipContext,  # noqa: ARG002 - the port's
    ) -> ClipMemories:
        """The clip's lines in order of time; ``context`` is not needed."""
        named = list(_named(percept, people))
        told = [*_said(percept.utterances, people), *_captions(percept.captions)]
        drafts = [*told, *_read(percept), *_seen(percept, people), *(line for line, _ in named)]
        return ClipMemories(
            drafts=tuple(sorted(drafts, key=lambda one: (one.span.start_ms, one.span.end_ms))),
            statements=tuple(_statements(percept, people)),
            names=tuple(name for _, name in named),
        )


def speaker_of(said: Utterance, people: People) -> Identity | None:
    """The voice that an utterance belongs to."""
    if said.speaker in people.speakers:
        return people.speakers[said.speaker or ""]
    return people.voices.get(said.voice) if said.voice is not None else None


def _said(utterances: Iterable[Utterance], people: People) -> Iterable[MemoryDraft]:
    for said in utterances:
        voice = speaker_of(said, people)
        tag = (voice.tag,) if voice else ()
        for text, span in pieces(said):
            yield MemoryDraft(
                kind=MemoryKind.EPISODIC,
                text=text,
                span=span,
                source=Source.SAID,
                tags=tag,
                speaker=said.speaker or next(iter(tag), None),
            )


def _captions(captions: Iterable[Utterance]) -> Iterable[MemoryDraft]:
    for told in captions:
        for text, span in pieces(told):
            yield _line(text, span, Source.CAPTION)


def _line(text: str, span: TimeSpan, source: Source, tags: tuple[str, ...] = ()) -> MemoryDraft:
    return MemoryDraft(kind=MemoryKind.EPISODIC, text=text, span=span, source=source, tags=tags)


def _read(percept: Percept) -> Iterable[MemoryDraft]:
    """One line a keyframe with text; a text that stays on screen is one line."""
    shown: dict[str, tuple[str, TimeSpan]] = {}
    for time_ms in sorted({line.time_ms for line in percept.screen_texts}):
        text = _joined([line for line in percept.screen_texts if line.time_ms == time_ms])
        end = max(time_ms, min(time_ms + READ_MS, percept.clip.span.end_ms))
        span = TimeSpan.of(time_ms, end)
        key = text.casefold()
        shown[key] = (text, shown[key][1].union(span)) if key in shown else (text, span)
    for text, span in shown.values():
        if text:
            yield _line(text, span, Source.READ)


def _joined(lines: Sequence[ScreenText]) -> str:
    return " / ".join(one.text.strip() for one in lines if one.score >= READ_SCORE)


def _seen(percept: Percept, people: People) -> Iterable[MemoryDraft]:
    shown = sorted((people.faces[one.number].number, one) for one in _first(percept, people))
    for number, group in shown:
        tag = f"<{IdentityKind.FACE}_{number}>"
        for span in _whole(visible(group)):
            yield _line(f"{tag} is on screen.", span, Source.SEEN, (tag,))
    for (one, seen), (other, too) in combinations(shown, 2):
        tags = (f"<{IdentityKind.FACE}_{one}>", f"<{IdentityKind.FACE}_{other}>")
        for span in _shared(visible(seen), visible(too)):
            text = f"{tags[0]} and {tags[1]} are on screen together."
            yield _line(text, span, Source.SEEN, tags)


def _first(percept: Percept, people: People) -> list[Group]:
    """The face groups, those of one identity joined."""
    joined: dict[int, Group] = {}
    for group in percept.faces:
        key = people.faces[group.number].number
        before = joined.get(key)
        sightings = (*(before.sightings if before else ()), *group.sightings)
        joined[key] = group.model_copy(update={"sightings": sightings})
        if before:
            joined[key] = joined[key].model_copy(update={"number": before.number})
    return list(joined.values())


def _whole(spans: Sequence[TimeSpan]) -> list[TimeSpan]:
    """From the first to the last appearance: one line a clip and person is enough."""
    return [TimeSpan.of(spans[0].start_ms, spans[-1].end_ms)] if spans else []


def _shared(ones: Sequence[TimeSpan], others: Sequence[TimeSpan]) -> list[TimeSpan]:
    both = [
        TimeSpan.of(max(a.start_ms, b.start_ms), min(a.end_ms, b.end_ms))
        for a in ones
        for b in others
        if a.overlap_ms(b)
    ]
    return _whole(sorted(both, key=lambda span: span.start_ms))


def _named(percept: Percept, people: People) -> Iterable[tuple[MemoryDraft, tuple[str, str]]]:
    for plate in plates(percept):
        tag = people.faces[plate.face].tag
        text = f"{tag} is named {plate.name}, {plate.title} (shown on screen)."
        end = max(plate.time_ms, min(plate.time_ms + READ_MS, percept.clip.span.end_ms))
        yield _fact(text, TimeSpan.of(plate.time_ms, end), Source.READ, tag), (tag, plate.name)
    for said in percept.utterances:
        voice, name = speaker_of(said, people), introduced(said)
        if voice and name and not said.speaker:
            text = f'{voice.tag} is named {name} (said: "{said.text.strip()}").'
            yield _fact(text, said.span, Source.SAID, voice.tag), (voice.tag, name)


def _fact(text: str, span: TimeSpan, source: Source, tag: str) -> MemoryDraft:
    return MemoryDraft(kind=MemoryKind.CHARACTER, text=text, span=span, source=source, tags=(tag,))


def _statements(percept: Percept, people: People) -> Iterable[IdentityStatement]:
    for face, voice, seconds in speaking_alone(percept):
        yield IdentityStatement(
            face=people.faces[face].number,
            voice=people.voices[voice].number,
            clip=percept.clip.index,
            support=seconds,
            reason=f"the only face in view during {seconds:.1f} s of this voice",
        )
