"""Recognises speech across the borders of clips, and other sounds in one clip.

A word that a clip's border cuts in two is heard wrongly on either side of it, and so is what is
next to it. So what is recognised with a clip ends at a rest shortly after the clip's end, and
what is recognised with the next one begins there; each word belongs to the clip that its middle
is in. Where that rest is follows from the sound after the border alone: clips can be recognised
in any order and again, always with the same result.

Classes of the model of sounds that mean one thing are one kind of sound (``sound_kinds.toml``).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from domain.media import Clip, Sound, Utterance
from domain.sentences import ends_sentence, join_sentences
from domain.time import TimeSpan
from perception.decode import decode_audio, lookahead_ms
from perception.faces_and_voices import SpeakerTurn, clip_span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from domain.settings import WatchSettings
    from models.ports import Samples, SoundClassifier, Speech, SpeechRecognizer, VoiceActivity, Word
    from perception.decode import RawClip
    from perception.source import SourceProbe


KINDS = Path(__file__).with_name("sound_kinds.toml")


@cache
def sound_kinds() -> Mapping[str, tuple[str, ...]]:
    """Return the classes of each kind of sound that is remembered."""
    table = tomllib.loads(KINDS.read_text(encoding="utf-8"))
    return {kind: tuple(classes) for kind, classes in table["kinds"].items()}


# A kind is heard in a window from a score on; windows without a longer pause between them are one
# event. The windows of a clip see nothing of another clip, so that it can be redone alone.
def find_sounds(
    samples: Samples, classifier: SoundClassifier, clip: Clip, settings: WatchSettings
) -> tuple[Sound, ...]:
    """Return the sounds of a clip in order of time, without speech, silence and noise.

    Args:
        samples: mono audio of the clip, values in [-1, 1].
        settings: ``sound_score``, ``sound_ms``, ``sound_pause_ms`` and ``audio_hz``.
    """
    scores = classifier.scores(samples)
    to_ms = 1000 / settings.audio_hz
    window_ms, hop_ms = classifier.window * to_ms, classifier.hop * to_ms
    length_ms = round(len(samples) * to_ms)
    # Each window stands for the hop around its middle; those at the ends reach the ends.
    last_ms = max(0.0, length_ms - window_ms)
    middles = [min(number * hop_ms, last_ms) + window_ms / 2 for number in range(len(scores))]
    starts = [0, *(round(middle - hop_ms / 2) for middle in middles[1:])]
    ends = [*(round(middle + hop_ms / 2) for middle in middles[:-1]), length_ms]
    place = {label: number for number, label in enumerate(classifier.labels)}
    # The score of each kind in each window: that of its most likely class.
    of_kinds = {
        kind: scores[:, [place[one] for one in classes]].max(axis=1)
        for kind, classes in sound_kinds().items()
    }
    found = [
        Sound(
            span=clip_span(starts[int(run[0])], ends[int(run[-1])], clip),
            kind=kind,
            score=float(values[run].max()),
        )
        for kind, values in of_kinds.items()
        for run in _runs(np.flatnonzero(values >= settings.sound_score), hop_ms, settings)
    ]
    return tuple(sorted(found, key=lambda one: (one.span.start_ms, one.span.end_ms, one.kind)))


def _runs(
    heard: NDArray[np.intp], hop_ms: float, settings: WatchSettings
) -> Iterator[NDArray[np.intp]]:
    """Yield windows that belong together, where there are enough of them."""
    breaks = np.flatnonzero((np.diff(heard) - 1) * hop_ms > settings.sound_pause_ms) + 1
    for run in np.split(heard, breaks):
        if len(run) * hop_ms >= settings.sound_ms:
            yield run


_TRIED, _TRIED_MS = 4, 15_000
"""Stretches of each track that are listened to, to find the one with speech."""
_BEGINNING_MS, _FRAME_MS, _QUIET_MS = 250, 20, 200
# Of a speech that was cut at six places each, 4.1 to 4.7 % of the words are wrong with what ends at
# a rest, 4.3 to 7.5 % where each clip is recognised alone, and 4.3 % over the whole file.
_CUT_MS = 300
"""The longest pause between two parts of a sentence that were recognised apart."""
_FULL_STOP = re.compile(r"(?<=[^.\s])\.$")
_PAUSE_MS = 1_000
SENTENCE_PAUSE_MS = 3_000
"""A longer pause ends a sentence."""
_MIN_RUN_MS = 600
_MAX_TURN_DISTANCE_MS = 1_000
"""A word further than this from every turn is nobody's."""


class SpeechModels(Protocol):
    """The models that speech is recognised by."""

    @property
    def speech(self) -> SpeechRecognizer:
        """Recognises speech."""

    @property
    def activity(self) -> VoiceActivity:
        """Detects voice activity."""


@dataclass(frozen=True)
class Heard:
    """What was recognised with a clip.

    Attributes:
        speech: What was said in the clip, in milliseconds from its start.
        after: What was said after its end, in milliseconds from there.
        after_ms: How much after its end was listened to.
        turns: Who speaks when in the clip.
        voices: The voices that have a group; others are told apart but not named.
    """

    speech: tuple[Speech, ...] = ()
    after: tuple[Speech, ...] = ()
    after_ms: int = 0
    turns: tuple[SpeakerTurn, ...] = ()
    voices: frozenset[int] = frozenset()

    def utterances(self, before: Iterable[Speech], clip: Clip) -> tuple[Utterance, ...]:
        """Return what was said in the clip, with what was recognised with the clip before it."""
        first = find_utterances(before, self.turns, self.voices, clip)
        own = find_utterances(self.speech, self.turns, self.voices, clip)
        if first and own:
            first = (*first[:-1], without_cut(first[-1], own[0]))
        return tuple(join_sentences([*first, *own], SENTENCE_PAUSE_MS))


NOTHING_HEARD = Heard()
"""Nobody speaks, or speech is not listened to."""


def recognise(raw: RawClip, models: SpeechModels, settings: WatchSettings) -> Heard:
    """Recognise a clip's speech from rest to rest, without telling who speaks."""
    hz, ahead = settings.audio_hz, lookahead_ms(settings) * settings.audio_hz // 1000
    after_ms, start = rest_after_ms(raw.following, models.activity, hz), raw.heard_from_ms
    if start is None:
        start = rest_after_ms(raw.samples[:ahead], models.activity, hz) if raw.clip.index else 0
    border = raw.clip.span.length_ms
    sound = np.concatenate([raw.samples, raw.following])
    # Of joined recordings, what is said in one is no context of what is said in the next.
    inside = (ms for ms in raw.seams if start < ms < border + after_ms)
    found: list[Speech] = []
    for begin, end in pairwise([start, *inside, border + after_ms]):
        window = sound[begin * hz // 1000 : end * hz // 1000]
        if models.activity.spans(window):
            found += (_moved(one, begin) for one in models.speech.transcribe(window))
    parts = [_split(one, border) for one in found]
    return Heard(
        speech=tuple(inside for inside, _ in parts if inside.words),
        after=tuple(_moved(after, -border) for _, after in parts if after.words),
        after_ms=after_ms,
    )


def rest_after_ms(ahead: Samples, activity: VoiceActivity, hz: int) -> int:
    """Return where the first rest of speech is, in milliseconds from the start of the samples.

    If nobody rests there, it is where it is most quiet.
    """
    spans = activity.spans(ahead) if ahead.any() else []
    if not spans or spans[0][0] > _BEGINNING_MS:
        return 0
    end, length_ms = spans[0][1], len(ahead) * 1000 // hz
    if end < length_ms - _FRAME_MS:
        return (end + spans[1][0]) // 2 if len(spans) > 1 else end
    quiet = _QUIET_MS * hz // 1000
    total = np.cumsum(ahead[hz:].astype(np.float64) ** 2)
    if len(total) <= quiet:
        return 0
    quietest = int(np.argmin(total[quiet:] - total[:-quiet]))
    return 1000 + (quietest + quiet // 2) * 1000 // hz


def _moved(speech: Speech, by_ms: int) -> Speech:
    words = (
        replace(word, start_ms=word.start_ms + by_ms, end_ms=word.end_ms + by_ms)
        for word in speech.words
    )
    return replace(speech, words=tuple(words))


def _split(speech: Speech, border_ms: int) -> tuple[Speech, Speech]:
    before = tuple(w for w in speech.words if w.start_ms + w.end_ms < 2 * border_ms)
    return replace(speech, words=before), replace(speech, words=speech.words[len(before) :])


def speaking_track(
    path: Path, probed: SourceProbe, activity: VoiceActivity, settings: WatchSettings
) -> int | None:
    """Return the number of the track of sound, from 1, in which most is said; None if it is one.

    Screen recorders put a microphone into a track of its own, beside that of the programs. The
    main track is kept where at least half as much is said: of dubbed films, it is the one meant.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """
    if len(probed.tracks) < 2:
        return None
    length, spoken = probed.info.duration_ms, list[int]()
    for track in probed.tracks:
        info, total = replace(probed.info, audio_index=track.stream), 0
        for part in range(_TRIED):
            start = max(0, (2 * part + 1) * length // (2 * _TRIED) - _TRIED_MS // 2)
            span = TimeSpan.of(start, min(length, start + _TRIED_MS))
            samples = decode_audio(path, info, Clip(index=0, span=span), settings.audio_hz).samples
            total += sum(end - begin for begin, end in activity.spans(samples))
        spoken.append(total)
    main = [track.stream for track in probed.tracks].index(probed.info.audio_index or 0)
    best = spoken.index(max(spoken))
    return 1 + (main if spoken[main] * 2 >= spoken[best] else best)


def find_utterances(
    speech: Iterable[Speech],
    turns: Sequence[SpeakerTurn],
    grouped_voices: Collection[int],
    clip: Clip,
) -> tuple[Utterance, ...]:
    """Divide speech by speaker, sentence and pause, in order of time.

    Args:
        speech: what was recognised; times from the clip's start.
        turns: who speaks when; times from the clip's start.
        grouped_voices: the voices that have a group; others are told apart but not named.
    """
    found = [
        Utterance(
            span=clip_span(piece[0][0].start_ms, piece[-1][0].end_ms, clip),
            text=text,
            language=recognised.language,
            confidence=recognised.confidence,
            voice=piece[0][1] if piece[0][1] in grouped_voices else None,
        )
        for recognised in speech
        for piece in _pieces(_with_voices(recognised.words, turns))
        if (text := "".join(word.text for word, _ in piece).strip())
    ]
    in_order = sorted(found, key=lambda u: (u.span.start_ms, u.span.end_ms))
    return tuple(join_sentences(in_order, SENTENCE_PAUSE_MS))


def without_cut(last: Utterance, following: Utterance) -> Utterance:
    """Take back the full stop that is put where recognised sound ends, also within a sentence.

    There the next word follows at once and is not capitalised.
    """
    at_once = following.span.start_ms - last.span.end_ms <= _CUT_MS
    if not (at_once and following.text[:1].islower()):
        return last
    return last.model_copy(update={"text": _FULL_STOP.sub("", last.text)})


def voice_at(start_ms: int, end_ms: int, turns: Sequence[SpeakerTurn]) -> int | None:
    """Return the voice of the turn that overlaps a span most, else of the nearest turn."""

    def shared_ms(turn: SpeakerTurn) -> int:
        return min(turn.end_ms, end_ms) - max(turn.start_ms, start_ms)

    best = max(turns, key=lambda turn: (shared_ms(turn), -turn.start_ms), default=None)
    return None if best is None or shared_ms(best) < -_MAX_TURN_DISTANCE_MS else best.voice


def _with_voices(
    words: Sequence[Word], turns: Sequence[SpeakerTurn]
) -> list[tuple[Word, int | None]]:
    """Give each word its voice; a short run between two runs of one voice is that voice's."""
    voiced = [(word, voice_at(word.start_ms, word.end_ms, turns)) for word in words]
    runs = [list(run) for _, run in groupby(voiced, key=lambda one: one[1])]
    for before, run, after in zip(runs, runs[1:], runs[2:], strict=False):
        length = run[-1][0].end_ms - run[0][0].start_ms
        if length < _MIN_RUN_MS and before[-1][1] == after[0][1]:
            run[:] = [(word, before[-1][1]) for word, _ in run]
    return [one for run in runs for one in run]


def _pieces(words: Iterable[tuple[Word, int | None]]) -> Iterator[list[tuple[Word, int | None]]]:
    """Split words at the end of a sentence, a change of voice or a pause."""
    piece: list[tuple[Word, int | None]] = []
    for word, voice in words:
        if piece:
            last, last_voice = piece[-1]
            paused = word.start_ms - last.end_ms > _PAUSE_MS
            if ends_sentence(last.text) or paused or voice != last_voice:
                yield piece
                piece = []
        piece.append((word, voice))
    if piece:
        yield piece
