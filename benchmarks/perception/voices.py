"""Evaluation of speaker turns and transcripts against annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.perception.annotations import read_rttm, read_transcript, read_uem
from benchmarks.perception.metrics import (
    SpeakerErrors,
    SpeakerSpan,
    WordErrors,
    speaker_errors,
    word_errors,
)
from domain.media import Clip
from domain.settings import WatchSettings
from domain.time import TimeSpan
from models.ports import Samples
from models.toolbox import Toolbox
from perception.decode import decode_audio, read_sound
from perception.faces_and_voices import find_turns
from perception.hearing import recognise
from perception.source import clips_of, probe

TRANSCRIBED = {
    "audio/pyannote_sample.flac": "audio/pyannote_sample.stm",
    "jackson_hole_speech.mp4": "jackson_hole_speech.srt",
    "agent327_360p.mp4": "agent327_english.vtt",
    "w3c_perspective.mp4": "w3c_perspective.vtt",
}
"""Clips and their transcripts."""


@dataclass(frozen=True)
class AnnotatedRecording:
    """A recording with annotated speakers, within the time spans ``scored``."""

    path: Path
    turns: tuple[SpeakerSpan, ...]
    scored: tuple[tuple[int, int], ...]

    @property
    def speakers(self) -> int:
        """Return the number of speakers."""
        return len({turn.who for turn in self.turns})


@dataclass(frozen=True)
class VoiceReport:
    """Speaker errors of one recording, with the usual collar and with none."""

    name: str
    speakers: int
    voices: int
    errors: SpeakerErrors
    strict: SpeakerErrors


@dataclass(frozen=True)
class WordReport:
    """Word errors of one file, and of the same model over the whole file."""

    name: str
    errors: WordErrors
    whole: WordErrors


def marked_recordings(folder: Path) -> list[AnnotatedRecording]:
    """Return the annotated recordings of ``folder`` and of its ``audio``, by name."""
    audio = folder / "audio"
    spans = {
        name: recordings
        for uem in sorted(audio.glob("*.uem"))
        for name, recordings in read_uem(uem).items()
    }
    recordings = [
        _marked(path, turns, spans.get(name))
        for rttm in sorted([*audio.glob("*.rttm"), *folder.glob("*.rttm")])
        for name, turns in read_rttm(rttm).items()
        if (path := _recording(rttm, name)) is not None
    ]
    return sorted(recordings, key=lambda recording: recording.path.name)


def _recording(rttm: Path, name: str) -> Path | None:
    """Find the file of a recording: by its name, else by the annotation's name."""
    candidates = (rttm.parent / f"{name}.flac", rttm.with_suffix(".flac"), rttm.with_suffix(".mp4"))
    return next((path for path in candidates if path.is_file()), None)


def _marked(
    path: Path, turns: Sequence[SpeakerSpan], spans: list[tuple[int, int]] | None
) -> AnnotatedRecording:
    whole_recording = [(0, probe(path).duration_ms)]
    return AnnotatedRecording(path, tuple(turns), tuple(spans or whole_recording))


def judge_voices(
    marked: AnnotatedRecording, toolbox: Toolbox, settings: WatchSettings
) -> VoiceReport:
    """Measure speaker turns in a recording, which is processed as one clip."""
    samples = _decode_samples(marked.path, settings)
    spans = toolbox.activity.spans(samples)
    turns = find_turns(samples, spans, toolbox.speaker, settings.audio_hz)
    detected = [SpeakerSpan(turn.start_ms, turn.end_ms, str(turn.voice)) for turn in turns]
    return VoiceReport(
        name=marked.path.name,
        speakers=marked.speakers,
        voices=len({turn.voice for turn in turns}),
        errors=speaker_errors(marked.turns, detected, marked.scored),
        strict=speaker_errors(marked.turns, detected, marked.scored, collar_ms=0),
    )


def _decode_samples(path: Path, settings: WatchSettings) -> Samples:
    info = probe(path)
    clip = Clip(index=0, span=TimeSpan.of(0, info.duration_ms))
    return decode_audio(path, info, clip, settings.audio_hz).samples


def judge_words(
    path: Path,
    transcript: Path,
    toolbox: Toolbox,
    settings: WatchSettings,
    on_clip: Callable[[], None],
) -> WordReport:
    """Measure the words of a file, recognised clip by clip as in an ingestion, and as a whole."""
    info, said = probe(path), list[str]()
    for clip in clips_of(info.duration_ms, settings):
        heard = recognise(read_sound(path, info, clip, settings), toolbox, settings)
        said += [speech.text for speech in (*heard.speech, *heard.after)]
        on_clip()
    whole = " ".join(one.text for one in toolbox.speech.transcribe(_decode_samples(path, settings)))
    true = read_transcript(transcript)
    return WordReport(path.name, word_errors(true, " ".join(said)), word_errors(true, whole))
