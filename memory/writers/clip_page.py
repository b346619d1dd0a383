"""Builds a clip writer's prompt: images and lines by part, and the page that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from domain.media import Percept, Utterance
from domain.wording import describe_by_time
from memory.prompts import join_lines, prompt, sanitise, sanitise_generated
from memory.writers.budget import PromptItem, PromptParts
from memory.writers.local_clip import speaker_of
from memory.writers.port import ClipContext
from people.clip_people import ClipPeople

MAX_CROPS = 8
"""Most faces shown to the model."""


def prompt_parts(
    percept: Percept, people: ClipPeople, context: ClipContext, *, images: bool
) -> PromptParts:
    """All that may be shown of a clip, in order of time; no images where the model sees none."""
    screen = (
        f"{line.time_ms / 1000:.1f} s: {sanitise(line.text)}" for line in percept.screen_texts
    )
    objects = (f"{ms / 1000:.1f} s: {counts}" for ms, counts in describe_by_time(percept.objects))
    facts = (
        f"[m{fact.id}] {sanitise_generated(people.replace_tags(fact.text))}"
        for fact in context.facts
    )
    return {
        # Keyframes first: a description names one by the number of its image.
        "keyframes": tuple(_keyframe_items(percept, context)) if images else (),
        "frames": tuple(_frame_items(context)) if images else (),
        "video": tuple(_video_items(percept, context)) if images else (),
        "faces": tuple(_face_items(percept, people, context))[:MAX_CROPS] if images else (),
        "lines of speech": _to_items(_audible_lines(percept, people)),
        "screen texts": _to_items(screen),
        "objects": _to_items(objects),
        "captions": _to_items(_transcript_lines(percept.captions, people)),
        "subtitles": _to_items(_subtitle_lines(percept, people)),
        "known facts": _to_items(facts),
    }


def _to_items(lines: Iterable[str]) -> tuple[PromptItem, ...]:
    return tuple(PromptItem(line) for line in lines)


def _keyframe_items(percept: Percept, context: ClipContext) -> Iterator[PromptItem]:
    for frame in percept.keyframes:
        if frame.blob in context.blobs:
            caption = f"keyframe at {frame.time_ms / 1000:.1f} s"
            yield PromptItem(caption, context.blobs[frame.blob], time_ms=frame.time_ms)


def _frame_items(context: ClipContext) -> Iterator[PromptItem]:
    for frame in context.view.frames:
        yield PromptItem(f"frame at {frame.time_ms / 1000:.1f} s", frame.jpeg)


def _video_items(percept: Percept, context: ClipContext) -> Iterator[PromptItem]:
    if context.view.video is not None:
        span = percept.clip.span
        start, end = span.start_ms / 1000, span.end_ms / 1000
        text = f"the clip as a video with sound, from {start:.1f} to {end:.1f} s"
        yield PromptItem(text, context.view.video, video_s=end - start)


def _face_items(percept: Percept, people: ClipPeople, context: ClipContext) -> Iterator[PromptItem]:
    """Yield the best crop of each face."""
    for group in percept.faces:
        blob = max(group.sightings, key=lambda sighting: sighting.quality).blob
        if blob is not None and blob in context.blobs:
            yield PromptItem(people.faces[group.number].tag, context.blobs[blob], crop=True)


def clip_prompt(
    percept: Percept, people: ClipPeople, context: ClipContext, parts: PromptParts
) -> str:
    """What is asked about a clip, with these parts of it; images in the order of the parts."""
    lists = {name: join_lines(item.text for item in items) for name, items in parts.items()}
    images = (item.text for items in parts.values() for item in items if item.image is not None)
    empty = join_lines(())
    return prompt(
        "clip",
        title=sanitise(context.title),
        clip=percept.clip.index,
        start=f"{percept.clip.span.start_ms / 1000:.1f}",
        end=f"{percept.clip.span.end_ms / 1000:.1f}",
        images=join_lines(f"{n}. {caption}" for n, caption in enumerate(images, 1)),
        people=join_lines(_people_lines(people)),
        transcript=lists.get("lines of speech", empty),
        screen=lists.get("screen texts", empty),
        objects=lists.get("objects", empty),
        captions=lists.get("captions", empty),
        subtitles=lists.get("subtitles", empty),
        facts=lists.get("known facts", empty),
    )


def _people_lines(people: ClipPeople) -> Iterable[str]:
    for tag in people.identities():
        person = people.character(tag)
        character = f" is {person.tag}" if person else ""
        named = f", known as {sanitise(person.name)}" if person and person.name else ""
        yield f"{tag}{character}{named}"


def _audible_lines(percept: Percept, people: ClipPeople) -> Iterable[str]:
    """What is said, then what is heard besides."""
    yield from _transcript_lines(percept.utterances, people)
    for sound in percept.sounds:
        span = sound.span
        yield f"{span.start_ms / 1000:.1f}-{span.end_ms / 1000:.1f} s (not speech: {sound.kind})"


def _transcript_lines(utterances: Iterable[Utterance], people: ClipPeople) -> Iterable[str]:
    for utterance in utterances:
        voice = speaker_of(utterance, people)
        named = sanitise(utterance.speaker) if utterance.speaker else None
        speaker = voice.tag if voice else named
        times = f"{utterance.span.start_ms / 1000:.1f}-{utterance.span.end_ms / 1000:.1f} s"
        yield f"{times} {speaker + ': ' if speaker else ''}{sanitise(utterance.text)}"


def _subtitle_lines(percept: Percept, people: ClipPeople) -> Iterable[str]:
    """Yield subtitles and chapters of the source, which may differ from recognised speech."""
    for chapter in percept.chapters:
        yield f"{chapter.span.start_ms / 1000:.1f} s a chapter begins: {sanitise(chapter.text)}"
    yield from _transcript_lines(percept.subtitles, people)
