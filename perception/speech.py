"""Splits the speech of one clip into utterances by speaker and by sentence.

A clip is recognised by itself, so that it can be redone alone: a word that the clip's border cuts
in two may be heard wrongly on either side of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from domain.media import Utterance
from domain.wording import join_sentences
from perception.voices import SpeakerTurn, clip_span

if TYPE_CHECKING:
    from domain.media import Clip
    from models.ports import Speech, Word

_SENTENCE_END = (".", "?", "!", "…", "。", "？", "！")
_CLOSING = "\"'”’»)]"
_PAUSE_MS = 1_000
SENTENCE_PAUSE_MS = 3_000
"""A longer pause ends a sentence."""
_MIN_RUN_MS = 600
_MAX_TURN_DISTANCE_MS = 1_000
"""A word further than this from every turn is nobody's."""


@dataclass(frozen=True)
class _AttributedWord:
    """A word with the voice that speaks it."""

    word: Word
    voice: int | None


def find_utterances(
    speech: Sequence[Speech],
    turns: Sequence[SpeakerTurn],
    grouped_voices: Collection[int],
    clip: Clip,
) -> tuple[Utterance, ...]:
    """Return the utterances of a clip in order of time.

    Args:
        speech: what the recogniser heard; times from the clip's start.
        turns: who speaks when; times from the clip's start.
        grouped_voices: the voices that have a group; others are told apart but not named.
        clip: where the samples lie in the video.
    """
    found = [
        u for recognised in speech for u in _split_speech(recognised, turns, grouped_voices, clip)
    ]
    in_order = sorted(found, key=lambda u: (u.span.start_ms, u.span.end_ms))
    return tuple(join_sentences(in_order, SENTENCE_PAUSE_MS))


def _split_speech(
    speech: Speech, turns: Sequence[SpeakerTurn], grouped_voices: Collection[int], clip: Clip
) -> Iterator[Utterance]:
    if not speech.words:
        voice = voice_at(speech.start_ms, speech.end_ms, turns)
        yield _utterance(
            speech, speech.text, speech.start_ms, speech.end_ms, voice, grouped_voices, clip
        )
        return
    pieces = list(_split_words(_smooth_voices([_attribute(word, turns) for word in speech.words])))
    for piece, text in zip(pieces, _piece_texts(speech.text, pieces), strict=True):
        start, end = piece[0].word.start_ms, piece[-1].word.end_ms
        if text:
            yield _utterance(speech, text, start, end, piece[0].voice, grouped_voices, clip)


def _attribute(word: Word, turns: Sequence[SpeakerTurn]) -> _AttributedWord:
    return _AttributedWord(word, voice_at(word.start_ms, word.end_ms, turns))


def voice_at(start_ms: int, end_ms: int, turns: Sequence[SpeakerTurn]) -> int | None:
    """Return the voice of the turn that overlaps a span most, else of the nearest turn."""
    best = max(turns, key=lambda t: (_shared_ms(t, start_ms, end_ms), -t.start_ms), default=None)
    if best is None or _shared_ms(best, start_ms, end_ms) < -_MAX_TURN_DISTANCE_MS:
        return None
    return best.voice


def _shared_ms(turn: SpeakerTurn, start_ms: int, end_ms: int) -> int:
    """Return the overlap of a turn and a span in milliseconds; negative is their distance."""
    return min(turn.end_ms, end_ms) - max(turn.start_ms, start_ms)


def _smooth_voices(words: Sequence[_AttributedWord]) -> list[_AttributedWord]:
    """Assign a short run between two runs of one voice to that voice."""
    runs = [list(run) for _, run in groupby(words, key=lambda attributed: attributed.voice)]
    for i in range(1, len(runs) - 1):
        before, run, after = runs[i - 1], runs[i], runs[i + 1]
        length = run[-1].word.end_ms - run[0].word.start_ms
        if length < _MIN_RUN_MS and before[-1].voice == after[0].voice:
            runs[i] = [_AttributedWord(attributed.word, before[-1].voice) for attributed in run]
    return [attributed for run in runs for attributed in run]


def _split_words(words: Sequence[_AttributedWord]) -> Iterator[list[_AttributedWord]]:
    """Split words at the end of a sentence, a change of voice or a pause."""
    piece: list[_AttributedWord] = []
    for word in words:
        if piece and _is_boundary(piece[-1], word):
            yield piece
            piece = []
        piece.append(word)
    if piece:
        yield piece


def _is_boundary(before: _AttributedWord, now: _AttributedWord) -> bool:
    ended = before.word.text.rstrip(_CLOSING).endswith(_SENTENCE_END)
    paused = now.word.start_ms - before.word.end_ms > _PAUSE_MS
    return ended or paused or before.voice != now.voice


def _piece_texts(text: str, pieces: Sequence[Sequence[_AttributedWord]]) -> Iterator[str]:
    """Yield the text of each piece, cut from the whole text, which has the language's spaces."""
    at = 0
    for piece in pieces:
        start = at
        for word in piece:
            found = text.find(word.word.text, at)
            at = found + len(word.word.text) if found >= 0 else at
        yield text[start:at].strip() or " ".join(h.word.text for h in piece).strip()


def _utterance(
    speech: Speech,
    text: str,
    start_ms: int,
    end_ms: int,
    voice: int | None,
    grouped_voices: Collection[int],
    clip: Clip,
) -> Utterance:
    return Utterance(
        span=clip_span(start_ms, end_ms, clip),
        text=text,
        language=speech.language,
        confidence=speech.confidence,
        voice=voice if voice in grouped_voices else None,
    )
