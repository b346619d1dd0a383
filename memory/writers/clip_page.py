"""A clip as a language model is shown it: images and lines by part, and the page with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from domain.media import Percept, Utterance
from domain.wording import describe_by_time
from memory.prompts import foreign, listed, noted, prompt
from memory.writers.budget import Item, Parts
from memory.writers.local_clip import speaker_of
from memory.writers.port import ClipContext
from people.clip_people import ClipPeople

CROPS = 8
"""Faces shown to the model at most."""


def parts_of(percept: Percept, people: ClipPeople, context: ClipContext, *, images: bool) -> Parts:
    """All that may be shown of a clip, in order of time; no images where the model sees none."""
    screen = (f"{one.time_ms / 1000:.1f} s: {foreign(one.text)}" for one in percept.screen_texts)
    things = (f"{ms / 1000:.1f} s: {told}" for ms, told in describe_by_time(percept.objects))
    facts = (f"[m{fact.id}] {noted(people.named(fact.text))}" for fact in context.facts)
    return {
        "keyframes": tuple(_frames(percept, context)) if images else (),
        "faces": tuple(_crops(percept, people, context))[:CROPS] if images else (),
        "lines of speech": _items(_transcript(percept.utterances, people)),
        "screen texts": _items(screen),
        "objects": _items(things),
        "captions": _items(_transcript(percept.captions, people)),
        "subtitles": _items(_came_along(percept, people)),
        "known facts": _items(facts),
    }


def _items(lines: Iterable[str]) -> tuple[Item, ...]:
    return tuple(Item(line) for line in lines)


def _frames(percept: Percept, context: ClipContext) -> Iterator[Item]:
    for frame in percept.keyframes:
        if frame.blob in context.blobs:
            told = f"keyframe at {frame.time_ms / 1000:.1f} s"
            yield Item(told, context.blobs[frame.blob])


def _crops(percept: Percept, people: ClipPeople, context: ClipContext) -> Iterator[Item]:
    """The best crop of each face."""
    for group in percept.faces:
        blob = max(group.sightings, key=lambda one: one.quality).blob
        if blob is not None and blob in context.blobs:
            yield Item(people.faces[group.number].tag, context.blobs[blob], crop=True)


def page(percept: Percept, people: ClipPeople, context: ClipContext, parts: Parts) -> str:
    """What is asked about a clip, with these parts of it; images in the order of the parts."""
    told = {name: listed(item.text for item in items) for name, items in parts.items()}
    images = (item.text for items in parts.values() for item in items if item.image is not None)
    nothing = listed(())
    return prompt(
        "clip",
        title=foreign(context.title),
        clip=percept.clip.index,
        start=f"{percept.clip.span.start_ms / 1000:.1f}",
        end=f"{percept.clip.span.end_ms / 1000:.1f}",
        images=listed(f"{n}. {what}" for n, what in enumerate(images, 1)),
        people=listed(_people(people)),
        transcript=told.get("lines of speech", nothing),
        screen=told.get("screen texts", nothing),
        objects=told.get("objects", nothing),
        captions=told.get("captions", nothing),
        subtitles=told.get("subtitles", nothing),
        facts=told.get("known facts", nothing),
    )


def _people(people: ClipPeople) -> Iterable[str]:
    for tag in people.identities():
        person = people.character(tag)
        known = f" is {person.tag}" if person else ""
        named = f", known as {foreign(person.name)}" if person and person.name else ""
        yield f"{tag}{known}{named}"


def _transcript(said: Iterable[Utterance], people: ClipPeople) -> Iterable[str]:
    for one in said:
        voice = speaker_of(one, people)
        named = foreign(one.speaker) if one.speaker else None
        who = voice.tag if voice else named
        times = f"{one.span.start_ms / 1000:.1f}-{one.span.end_ms / 1000:.1f} s"
        yield f"{times} {who + ': ' if who else ''}{foreign(one.text)}"


def _came_along(percept: Percept, people: ClipPeople) -> Iterable[str]:
    """Subtitles and chapters of the source, which may differ from what was heard."""
    for one in percept.chapters:
        yield f"{one.span.start_ms / 1000:.1f} s a chapter begins: {foreign(one.text)}"
    yield from _transcript(percept.subtitles, people)
