"""What an ingestion will cost, before it starts: images, tokens, money and time.

A few clips of the file are perceived as they would be, and the request that the model would be sent
is built and counted; no language model is called, and nothing is stored. How long a model's
replies are, and how long they take, is known from those on record. Texts that an embeddings
endpoint would be sent are counted too (``flows.estimate``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

import numpy as np

from domain.media import Clip, Group, IdentityKind
from domain.memories import ClipMemories
from domain.people import Identity
from domain.settings import LINE_TOKENS, Subtitles
from domain.watching import IngestEstimate
from flows.clip_memory import builds_windows
from flows.workspace import Workspace
from memory.subtitles import SourceTexts, texts_to_use
from memory.writers import make_writers
from memory.writers.llm_clip import LlmClipWriter
from memory.writers.llm_event import LlmEventWriter
from memory.writers.local_event import expected_summary_lines
from memory.writers.port import ClipContext
from memory.writers.segment_labels import is_telling
from models.messages import text_tokens
from models.profile import Profile
from models.specs import cost_usd, is_priced
from models.text_endpoint import EndpointTextEmbedder
from people.characters import ClipPeople
from people.names import search_text
from perception.decode import ClipReader, read_clips
from perception.perceive_clip import decode_and_perceive
from perception.source import clips_of, probe_source, video_id
from store.queries import clips as clip_rows
from store.queries.clips import StoredClip
from store.queries.trajectories import mean_call
from store.queries.trajectories import tokens_a_character as recorded_tokens_a_character
from store.queries.videos import known_video

# What an embeddings endpoint will take for texts, before they are sent to it.
#
# How many tokens a character of text has is known from the requests on record, else from a few
# sentences that the endpoint is asked to embed: nothing of a video is sent for an estimate.

SAMPLE = (
    "Good morning, and thank you all for coming to this talk about how cities are planned.",
    "So the first question is how much of that we can measure at all.",
    "A woman in a red coat opens the door and carries a lamp into the hall.",
    "On screen: Quarterly results, revenue by region, 2019 to 2023",
    "Seen: 3 people, a laptop, a cup.",
    "Heard: music, continued.",
    "I don't know. We should ask her again before Tuesday.",
    "The lines represent linear equations, and where they meet is the solution.",
    "He is the brother of the man who sold the house.",
    "Picture: dark, mostly brown.",
    "If you look at the upper left corner, you can see that the pressure rises slowly.",
    "Right, yes, exactly.",
)
"""Texts like those of a memory, whose tokens are counted, and whose embedding is timed."""


CHARACTERS_A_TOKEN = 4
"""Where nobody has counted."""


def tokens_a_character(workspace: Workspace) -> float:
    """Return how many tokens a character of text has for the profile's embeddings endpoint.

    Raises:
        ModelError: There is no record of it yet, and it does not answer.
        SetupError: A package or key is missing, or the key is refused.
    """
    with workspace.store.begin() as session:
        known = recorded_tokens_a_character(session, workspace.profile.text_name)
    text = workspace.toolbox.text
    if known is not None or not isinstance(text, EndpointTextEmbedder):
        return known or 0.0
    return text.count_tokens(SAMPLE) / sent_characters(workspace.profile, SAMPLE)


def sent_characters(profile: Profile, texts: Iterable[str]) -> int:
    """Return the characters of texts as an endpoint is sent them, each with its prefix."""
    prefix = len(profile.encoder.passage_prefix or "")
    return sum(prefix + len(text) for text in texts)


def embedding_cost(profile: Profile, tokens: float) -> float | None:
    """Return US dollars for embedding so many tokens; None where no price is known."""
    if not profile.uses_endpoint:
        return 0.0
    spec = profile.text_endpoint
    return cost_usd(spec, round(tokens), 0) if is_priced(spec) else None


def embedding_seconds(workspace: Workspace, characters: int) -> float:
    """Return about how long embedding so many characters takes, by embedding a few sentences."""
    workspace.toolbox.text.embed(SAMPLE[:1])  # Loads the model.
    start = time.monotonic()
    workspace.toolbox.text.embed(SAMPLE)
    return (time.monotonic() - start) * characters / sum(map(len, SAMPLE))


def picture_seconds(workspace: Workspace, pictures: int) -> float:
    """Return about how long encoding so many pictures takes, by encoding one; 0 without a model."""
    encoder = workspace.toolbox.images
    if encoder is None:
        return 0.0
    image = np.zeros((720, 1280, 3), np.uint8)
    encoder.images([image])  # The first one is slower.
    start = time.monotonic()
    encoder.images([image])
    return (time.monotonic() - start) * pictures


SAMPLES = 3
"""Clips that are perceived for an estimate, besides a short last one."""
EMBEDDED_SHARE = 0.55
"""Of a model's reply, the part that is text of lines, descriptions and segments, not their form."""
SECOND_REPLY = 1.5
"""A second look's reply has half as many lines as the first at most."""
PATCH_REPLY_TOKENS = 1_200
"""Tokens of a patch of the event graph in a model's reply."""


@dataclass(frozen=True)
class _Sample:
    """One perceived clip: the seconds it took, its request's size, and tokens of what was said.

    It stands for ``clips`` clips. ``embedded`` are the texts that are embedded of it, without those
    that a model writes; ``telling`` those of them that summaries by rules are made of.
    """

    clips: float
    seconds: float
    images: int
    tokens: int
    spoken: int
    embedded: tuple[str, ...]
    telling: tuple[str, ...]


def estimate_file(
    workspace: Workspace, path: Path, *, again: bool = False, subtitles: Subtitles | None = None
) -> IngestEstimate:
    """Estimate what it will take to watch the clips of a file that are not in memory yet.

    Args:
        again: as for watching it: with the clips that failed for good.
        subtitles: as for watching it: whether its own subtitles are used.

    Raises:
        MediaError: the file is empty, damaged, or has neither video nor audio.
        InputError: it was watched with other subtitles, or a subtitle file cannot be read.
        SetupError: weights or the language model's package or key are missing.
    """
    probed = probe_source(path)
    info = probed.info
    with workspace.store.begin() as session:
        known = known_video(session, video_id(path))
    pending: Sequence[Clip | StoredClip] = clips_of(info.duration_ms, workspace.settings.watch)
    if known is not None:
        with workspace.store.begin() as session:
            pending = clip_rows.next_clips(session, known.id, again=again)
    texts = None
    if pending or subtitles is not None:
        texts = texts_to_use(path, probed, known, subtitles, workspace.settings.watch.subtitles)
    if not pending:
        return IngestEstimate(title=path.stem, clips=0)
    reader = ClipReader(path, info, workspace.settings.watch, read_clips)
    # Those that are perceived are spread over the video, and each stands for a number of clips. A
    # short last clip has fewer images: it stands for itself.
    indices = [clip.index for clip in pending]
    is_short = pending[-1].span.length_ms < workspace.settings.watch.clip_ms
    short = [indices.pop()] if is_short and len(indices) > 1 else []
    chosen = sorted({indices[(2 * n + 1) * len(indices) // (2 * SAMPLES)] for n in range(SAMPLES)})
    sampled = dict.fromkeys(short, 1.0) | dict.fromkeys(chosen, len(indices) / len(chosen))
    samples = [
        _sample(workspace, reader, clip, texts or SourceTexts(), clips)
        for clip, clips in sampled.items()
    ]
    # The first one also loads the models.
    perceiving = median(one.seconds for one in samples[1:] or samples)
    workers = workspace.settings.work.workers
    if workspace.profile.writer == "llm":
        found = _with_model(workspace, path.stem, len(pending), samples, perceiving / workers)
    else:
        seconds = len(pending) * perceiving / workers
        found = IngestEstimate(title=path.stem, clips=len(pending), seconds=seconds)
    return _with_endpoint(workspace, found, samples) if workspace.profile.uses_endpoint else found


def _mean(samples: Sequence[_Sample], value: Callable[[_Sample], float]) -> float:
    return fmean(map(value, samples), [one.clips for one in samples])


def _sample(
    workspace: Workspace, reader: ClipReader, clip: int, source_texts: SourceTexts, clips: float
) -> _Sample:
    tools, settings = workspace.toolbox, workspace.settings.watch
    start = time.monotonic()
    perceived = decode_and_perceive(
        reader, clip, tools, settings, workspace.profile.shown_clips
    ).perceived
    seconds = time.monotonic() - start
    percept = source_texts.add_to(perceived.percept)
    perceived = replace(perceived, percept=percept)
    texts = (*percept.utterances, *percept.captions, *percept.subtitles, *percept.chapters)
    spoken = sum(text_tokens(one.text) for one in texts)
    # Nobody knows the clip's people yet.
    people = ClipPeople(
        faces={group.number: _new_identity(group) for group in percept.faces},
        voices={group.number: _new_identity(group) for group in percept.voices},
    )
    context = ClipContext("", blobs=perceived.blobs, view=perceived.view)
    writer = make_writers(workspace.toolbox, workspace.profile).clip
    if not isinstance(writer, LlmClipWriter):
        written = writer.write(percept, people, context)
        return _Sample(clips, seconds, 0, 0, spoken, *_embedded(written, people))
    written = writer.quote(percept, people, context)
    images, tokens = writer.request_size(percept, people, context)
    return _Sample(clips, seconds, images, tokens, spoken, *_embedded(written, people))


def _embedded(written: ClipMemories, people: ClipPeople) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the distinct texts of a clip's memory, and those of them for summaries by rules."""
    lines = {search_text(draft, people): is_telling(draft) for draft in written.drafts}
    described = (people.replace_tags(one.text) for one in written.descriptions)
    texts = tuple(dict.fromkeys([*lines, *described]))
    return texts, tuple(text for text, telling in lines.items() if telling)


def _new_identity(group: Group) -> Identity:
    number = group.number + 1
    row = 2 * number + (group.kind == IdentityKind.VOICE)
    return Identity(id=row, kind=group.kind, number=group.number, first_clip=0)


def _with_model(
    workspace: Workspace, title: str, clips: int, samples: Sequence[_Sample], perceiving: float
) -> IngestEstimate:
    settings, spec = workspace.settings.memory, workspace.profile.chat_for("writer")
    windowed = builds_windows(settings)
    patches = math.ceil(clips / settings.patch_every) / clips if windowed else 0.0
    written = float((settings.lines + workspace.settings.watch.keyframes) * LINE_TOKENS)
    remembered = _mean(samples, lambda one: one.spoken) + settings.lines * LINE_TOKENS
    tokens_in = _mean(samples, lambda one: one.tokens)
    images = _mean(samples, lambda one: one.images)
    looks_twice = settings.looks_twice and images > 0
    if looks_twice:
        tokens_in += tokens_in + written
        written *= SECOND_REPLY
    writer = make_writers(workspace.toolbox, workspace.profile).event
    blank_patch = writer.blank_tokens if isinstance(writer, LlmEventWriter) else 0
    tokens_in += patches * blank_patch + (remembered if windowed else 0.0)
    with workspace.store.begin() as session:
        call = mean_call(session, spec.model, "clip")
        patch = mean_call(session, spec.model, "events")
    reply = call[1] * (SECOND_REPLY if looks_twice else 1) if call else written
    tokens_out = reply + patches * (patch[1] if patch else PATCH_REPLY_TOKENS)
    cost = cost_usd(spec, round(tokens_in * clips), round(tokens_out * clips))
    # Clips are perceived one ahead of those that are written.
    writing = call[0] * (1 + looks_twice) / settings.clips_at_once if call else 0.0
    slower = max(perceiving, writing)
    return IngestEstimate(
        title=title,
        clips=clips,
        images=images,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost_usd=cost if is_priced(spec) else None,
        seconds=clips * slower,
        model_timed=call is not None,
    )


def _with_endpoint(
    workspace: Workspace, estimate: IngestEstimate, samples: Sequence[_Sample]
) -> IngestEstimate:
    """Add what an embeddings endpoint takes: for the lines of a clip, and for segments."""
    profile, settings = workspace.profile, workspace.settings.memory
    rate = tokens_a_character(workspace)
    sent = _mean(samples, lambda one: sent_characters(profile, one.embedded))
    tokens = rate * sent
    if profile.writer == "llm":
        written = estimate.tokens_out * CHARACTERS_A_TOKEN * EMBEDDED_SHARE
        texts = settings.lines + workspace.settings.watch.keyframes
        tokens += rate * (written + sent_characters(profile, texts * [""]))
    else:
        telling = [text for one in samples for text in one.telling]
        lines = _mean(samples, lambda one: len(one.telling)) * estimate.clips
        summed_up = expected_summary_lines(lines, estimate.clips, settings)
        tokens += rate * summed_up * fmean(map(len, telling or [""])) / estimate.clips
    cost = embedding_cost(profile, tokens * estimate.clips)
    unknown = cost is None or estimate.cost_usd is None
    return estimate.model_copy(
        update={
            "tokens_in": estimate.tokens_in + tokens,
            "cost_usd": None if unknown else (cost or 0.0) + (estimate.cost_usd or 0.0),
        }
    )
