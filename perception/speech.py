"""What was said in one clip, cut into turns by speaker and by sentence.

A clip is recognised by itself, so that it can be redone alone: a word that the clip's border cuts
in two may be heard wrongly on either side of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from domain.media import Utterance
from perception.voices import SpeakerTurn, clip_span

if TYPE_CHECKING:
    from domain.media import Clip
    from models.ports import Speech, Word

_SENTENCE_END = (".", "?", "!", "…", "。", "？", "！")
_CLOSING = "\"'”’»)]"
_PAUSE_MS = 1_000
_FLICKER_MS = 600
_NEAR_MS = 1_000
"""A word further than this from every turn is nobody's."""


@dataclass(frozen=True)
class _Heard:
    """A word with the voice it is in."""

    word: Word
    voice: int | None


def utterances(
    speech: Sequence[Speech], turns: Sequence[SpeakerTurn], known: Collection[int], clip: Clip
) -> tuple[Utterance, ...]:
    """Utterances in order of time.

    Args:
        speech: what the recogniser heard; times from the clip's start.
        turns: who speaks when; times from the clip's start.
        known: the voices that have a group; others are told apart but not named.
        clip: where the samples lie in the video.
    """
    found = [u for stretch in speech for u in _of_stretch(stretch, turns, known, clip)]
    return tuple(sorted(found, key=lambda u: (u.span.start_ms, u.span.end_ms)))


def _of_stretch(
    speech: Speech, turns: Sequence[SpeakerTurn], known: Collection[int], clip: Clip
) -> Iterator[Utterance]:
    if not speech.words:
        voice = voice_at(speech.start_ms, speech.end_ms, turns)
        yield _utterance(speech, speech.text, speech.start_ms, speech.end_ms, voice, known, clip)
        return
    pieces = list(_pieces(_steady([_heard(word, turns) for word in speech.words])))
    for piece, text in zip(pieces, _texts(speech.text, pieces), strict=True):
        start, end = piece[0].word.start_ms, piece[-1].word.end_ms
        if text:
            yield _utterance(speech, text, start, end, piece[0].voice, known, clip)


def _heard(word: Word, turns: Sequence[SpeakerTurn]) -> _Heard:
    return _Heard(word, voice_at(word.start_ms, word.end_ms, turns))


def voice_at(start_ms: int, end_ms: int, turns: Sequence[SpeakerTurn]) -> int | None:
    """The voice of the turn that shares most time with a stretch, else of the nearest one."""
    best = max(turns, key=lambda t: (_shared(t, start_ms, end_ms), -t.start_ms), default=None)
    if best is None or _shared(best, start_ms, end_ms) < -_NEAR_MS:
        return None
    return best.voice


def _shared(turn: SpeakerTurn, start_ms: int, end_ms: int) -> int:
    """Milliseconds that a turn shares with a stretch; below 0, how far apart they are."""
    return min(turn.end_ms, end_ms) - max(turn.start_ms, start_ms)


def _steady(words: Sequence[_Heard]) -> list[_Heard]:
    """Give a flicker between two runs of one voice back to that voice."""
    runs = [list(run) for _, run in groupby(words, key=lambda heard: heard.voice)]
    for i in range(1, len(runs) - 1):
        before, run, after = runs[i - 1], runs[i], runs[i + 1]
        length = run[-1].word.end_ms - run[0].word.start_ms
        if length < _FLICKER_MS and before[-1].voice == after[0].voice:
            runs[i] = [_Heard(heard.word, before[-1].voice) for heard in run]
    return [heard for run in runs for heard in run]


def _pieces(words: Sequence[_Heard]) -> Iterator[list[_Heard]]:
    """Words up to the end of a sentence, a change of voice or a pause."""
    piece: list[_Heard] = []
    for heard in words:
        if piece and _parts(piece[-1], heard):
            yield piece
            piece = []
        piece.append(heard)
    if piece:
        yield piece


def _parts(before: _Heard, now: _Heard) -> bool:
    ended = before.word.text.rstrip(_CLOSING).endswith(_SENTENCE_END)
    paused = now.word.start_ms - before.word.end_ms > _PAUSE_MS
    return ended or paused or before.voice != now.voice


def _texts(whole: str, pieces: Sequence[Sequence[_Heard]]) -> Iterator[str]:
    """The text of each piece, cut from the whole: its spaces are those of the language."""
    at = 0
    for piece in pieces:
        start = at
        for heard in piece:
            found = whole.find(heard.word.text, at)
            at = found + len(heard.word.text) if found >= 0 else at
        yield whole[start:at].strip() or " ".join(h.word.text for h in piece).strip()


def _utterance(
    speech: Speech,
    text: str,
    start_ms: int,
    end_ms: int,
    voice: int | None,
    known: Collection[int],
    clip: Clip,
) -> Utterance:
    return Utterance(
        span=clip_span(start_ms, end_ms, clip),
        text=text,
        language=speech.language,
        confidence=speech.confidence,
        voice=voice if voice in known else None,
    )
