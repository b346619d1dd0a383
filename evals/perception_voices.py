"""Who speaks when, and what is said: as it is heard in an ingestion, beside what people marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.media import Clip
from domain.settings import WatchSettings
from domain.time import TimeSpan
from evals.annotations import read_rttm, read_transcript, read_uem
from evals.diarization import SpeakerErrors, SpeakerSpan, speaker_errors
from evals.words import WordErrors, word_errors
from models.ports import Samples
from models.toolbox import Toolbox
from perception.sound import hear
from perception.source import clips_of, probe
from perception.voices import find_turns

TRANSCRIBED = {
    "audio/pyannote_sample.flac": "audio/pyannote_sample.stm",
    "jackson_hole_speech.mp4": "jackson_hole_speech.srt",
    "agent327_360p.mp4": "agent327_english.vtt",
    "w3c_perspective.mp4": "w3c_perspective.vtt",
}
"""Clips, and what is said in them."""


@dataclass(frozen=True)
class Marked:
    """A recording whose speakers were marked, in the stretches ``scored``."""

    path: Path
    turns: tuple[SpeakerSpan, ...]
    scored: tuple[tuple[int, int], ...]

    @property
    def speakers(self) -> int:
        """How many people speak."""
        return len({turn.who for turn in self.turns})


@dataclass(frozen=True)
class VoiceReport:
    """Who speaks when in one recording: errors with the usual collar, and with none at all."""

    name: str
    speakers: int
    voices: int
    errors: SpeakerErrors
    strict: SpeakerErrors


@dataclass(frozen=True)
class WordReport:
    """What is said in one clip."""

    name: str
    errors: WordErrors


def marked_recordings(folder: Path) -> list[Marked]:
    """The recordings of ``folder`` and of its ``audio`` that have marked turns, by name."""
    audio = folder / "audio"
    spans = {
        name: found for uem in sorted(audio.glob("*.uem")) for name, found in read_uem(uem).items()
    }
    found = [
        _marked(path, turns, spans.get(name))
        for rttm in sorted([*audio.glob("*.rttm"), *folder.glob("*.rttm")])
        for name, turns in read_rttm(rttm).items()
        if (path := _recording(rttm, name)) is not None
    ]
    return sorted(found, key=lambda one: one.path.name)


def _recording(rttm: Path, name: str) -> Path | None:
    """The file a name stands for: of that name, else beside the annotation, of the same name."""
    likely = (rttm.parent / f"{name}.flac", rttm.with_suffix(".flac"), rttm.with_suffix(".mp4"))
    return next((path for path in likely if path.is_file()), None)


def _marked(
    path: Path, turns: Sequence[SpeakerSpan], spans: list[tuple[int, int]] | None
) -> Marked:
    whole = [(0, probe(path).duration_ms)]
    return Marked(path, tuple(turns), tuple(spans or whole))


def judge_voices(marked: Marked, toolbox: Toolbox, settings: WatchSettings) -> VoiceReport:
    """Who speaks when in a recording, which is heard as one clip."""
    samples = _whole(marked.path, settings)
    spans = toolbox.activity.spans(samples)
    turns = find_turns(samples, spans, toolbox.speaker, settings.audio_hz)
    told = [SpeakerSpan(turn.start_ms, turn.end_ms, str(turn.voice)) for turn in turns]
    return VoiceReport(
        name=marked.path.name,
        speakers=marked.speakers,
        voices=len({turn.voice for turn in turns}),
        errors=speaker_errors(marked.turns, told, marked.scored),
        strict=speaker_errors(marked.turns, told, marked.scored, collar_ms=0),
    )


def _whole(path: Path, settings: WatchSettings) -> Samples:
    info = probe(path)
    clip = Clip(index=0, span=TimeSpan.of(0, info.duration_ms))
    return hear(path, info, clip, settings.audio_hz).samples


def judge_words(
    path: Path,
    transcript: Path,
    toolbox: Toolbox,
    settings: WatchSettings,
    told: Callable[[], None],
) -> WordReport:
    """What is said in a clip, heard in the pieces that an ingestion hears it in."""
    info, written = probe(path), []
    for clip in clips_of(info.duration_ms, settings):
        samples = hear(path, info, clip, settings.audio_hz).samples
        written += [speech.text for speech in toolbox.speech.transcribe(samples)]
        told()
    return WordReport(path.name, word_errors(read_transcript(transcript), " ".join(written)))
