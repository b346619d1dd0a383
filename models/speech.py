"""Speech by Whisper on CTranslate2 (int8 on the CPU by default); speakers by WeSpeaker.

Recognition is deterministic: one temperature (0, so nothing is sampled), a fixed number of beams,
and no text carried over from one window to the next.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import kaldi_native_fbank as knf
import numpy as np

from domain.errors import ModelError, SetupError, WeightsMissing
from models.devices import CPU, SpeechDevice, limit_arenas, make_idle_threads_sleep
from models.hub import HubModel, is_hub_name
from models.onnx import open_session, threads_allowed
from models.ports import Samples, Speech, Vector, Word
from models.specs import VOICES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from faster_whisper import WhisperModel


# Changes to how faster-whisper decodes a recording window by window.
#
# Each window is encoded once, for its language and its words, and a decoder that loops ends when
# there are more tokens than can be spoken in the time.

SHORTEST_TALK_S = 0.4
"""So much silence is added after speech, so a shorter remainder has no word."""

_COLUMNS_A_SECOND = 100
_TOKENS_ANYWAY, _TOKENS_A_SECOND = 16, 15
"""The most tokens that can be spoken: English takes a quarter of it."""

_NOTHING: Any = object()
"""The encoding of a window without a word."""
_SILENCE = SimpleNamespace(no_speech_prob=1.0), -math.inf, 0.0, 0.0
"""The result for it, as faster-whisper reports silence."""


class Windows:
    """Wraps a model's encoding and decoding of windows, one recording at a time.

    Args:
        model: one of faster-whisper's, three methods of which are replaced.
    """

    def __init__(self, model: Any) -> None:
        self._encode, self._detect_language = model.encode, model.detect_language
        self._decode, self._longest = model.generate_with_fallback, int(model.max_length)
        self._last: tuple[Any, Any] | None = None
        self._sound_s, self._begun = 0.0, False
        model.encode, model.detect_language = self.encode, self.detect_language
        model.generate_with_fallback = self.decode

    def reset(self) -> None:
        """Start a new recording."""
        self._begun = False

    def encode(self, features: Any) -> Any:
        """Encode a window, or reuse the last encoding if equal; features are (bins, columns)."""
        # How much of a window is sound; its padding is zeros.
        filled = np.flatnonzero(np.asarray(features).any(axis=0))
        self._sound_s = float(filled[-1] + 1) / _COLUMNS_A_SECOND if len(filled) else 0.0
        if self._begun and self._sound_s < SHORTEST_TALK_S:
            return _NOTHING
        if self._last is None or not np.array_equal(self._last[0], features):
            self._last = np.array(features), self._encode(features)
        return self._last[1]

    def detect_language(self, *args: Any, features: Any = None, **more: Any) -> Any:
        """Detect the language of the window that is decoded too: of all but the last 10 ms."""
        if features is not None:
            features = features[..., :-1]
        return self._detect_language(*args, features=features, **more)

    def decode(self, encoded: Any, prompt: Any, tokenizer: Any, options: Any) -> Any:
        """Decode a window, to as many tokens as can be spoken in it."""
        self._begun = True
        if encoded is _NOTHING:
            return _SILENCE
        spoken = _TOKENS_ANYWAY + round(_TOKENS_A_SECOND * self._sound_s)
        # CTranslate2 gives out half of the length it is allowed.
        most = 2 * min(spoken, self._longest // 2) - len(prompt)
        return self._decode(encoded, prompt, tokenizer, replace(options, max_new_tokens=most))


# Whisper models that are not of the manifest: a folder, or a model of the hub.

FILES = ("config.json", "model.bin", "tokenizer.json")
"""What a folder must have, besides one of ``VOCABULARIES``."""
VOCABULARIES = ("vocabulary.json", "vocabulary.txt")
_PATHS = ("/", ".", "~")


def is_path(name: str) -> bool:
    """Check whether a profile's ``speech`` is a folder."""
    return name.startswith(_PATHS) or Path(name).is_dir()


def model_name(name: str) -> str:
    """Return how a model is called in the store: the last part of a path or of a hub's name."""
    return f"whisper-{Path(name).name.removeprefix('whisper-')}"


def hub_speech_model(name: str) -> HubModel:
    """Return a Whisper model of the hub: ``OWNER/NAME``, or a name that faster-whisper knows.

    Both may have ``@REVISION`` behind them.

    Raises:
        WeightsMissing: It is neither; the message lists the names that are known.
    """
    if not is_hub_name(name):
        # Slow to import, and only profiles with a model of the hub need it.
        from faster_whisper.utils import _MODELS

        known, at, revision = name.partition("@")
        if known not in _MODELS:
            raise WeightsMissing(
                f"there is no speech model {known!r}: name a folder (/..., ./..., ~/...), "
                f"OWNER/NAME of the hub, or one of {', '.join(_MODELS)}"
            )
        name = f"{_MODELS[known]!s}{at}{revision}"
    required = tuple((file,) for file in FILES)
    return HubModel(
        name,
        "speech",
        (*required, VOCABULARIES),
        ("preprocessor_config.json",),
        form="a Whisper model for CTranslate2",
    )


def whisper_folder(name: str, weights: Path) -> Path:
    """Return the folder of a Whisper model for CTranslate2, fetched where it is not there yet.

    Args:
        name: A folder, or as in ``hub_speech_model``.

    Raises:
        WeightsMissing: A file is missing and cannot be fetched; names it and where to put it.
    """
    if not is_path(name):
        return hub_speech_model(name).ready_folder(weights)
    folder = Path(name).expanduser()
    if missing := missing_file(folder):
        raise WeightsMissing(f"the speech model {name!r} lacks {missing}: put it into {folder}")
    return folder


def missing_file(folder: Path) -> str | None:
    """Return the first file that a folder lacks."""
    lacking = (file for file in FILES if not (folder / file).is_file())
    has_vocabulary = any((folder / file).is_file() for file in VOCABULARIES)
    return next(lacking, None if has_vocabulary else VOCABULARIES[0])


# Voice activity by Silero, which comes with faster-whisper.

SAMPLE_HZ = 16_000
SPEECH = 0.35
"""Chance of speech from which it begins. At Silero's own 0.5 much is lost of what is said at some
way from the microphone (`make eval-perception` measures it)."""
SHORTEST_SPEECH_MS = 250
SHORTEST_PAUSE_MS = 300
PAD_MS = 200
"""Added on either side: words begin and end more softly than Silero notices."""


class SileroActivity:
    """Voice activity detection by Silero."""

    name = "silero"

    def spans(self, samples: Samples, chance: float = SPEECH) -> list[tuple[int, int]]:
        """Return spans of speech in 16 kHz ``samples``, in milliseconds, in order, disjoint.

        ``chance`` is that of speech from which it begins.
        """
        make_idle_threads_sleep()
        # After that: OpenMP reads the environment when it is loaded.
        from faster_whisper.vad import VadOptions, get_speech_timestamps

        if not len(samples):
            return []
        options = VadOptions(
            threshold=chance,
            min_speech_duration_ms=SHORTEST_SPEECH_MS,
            min_silence_duration_ms=SHORTEST_PAUSE_MS,
            speech_pad_ms=PAD_MS,
        )
        found = get_speech_timestamps(np.ascontiguousarray(samples, np.float32), options)
        return [(_ms(span["start"]), _ms(span["end"])) for span in found]


def _ms(sample: int) -> int:
    return sample * 1000 // SAMPLE_HZ


BEAM = 5
SHORTEST_S = 0.2
SPOKEN = 0.5
"""Chance of speech from which words are looked for: with a lower one, they are found in music."""
REPEATED = 3
"""Words that come so often in a row were said so often, or the decoder loops."""
_LONGEST_REPEATED = 30
_LEAST_WORD_S, _MOST_WORDS_A_SECOND = 0.04, 8.0
_LEAST_LOUDNESS = 0.05
"""Of a word, as a part of the loudest twentieth of the sound: less is the noise of a room."""
_UNSURE = -1.0
"""Whisper's own bar for a decoding that is not to be believed, as a log-probability."""
_FRAME_S = 0.02


class WhisperRecognizer:
    """Whisper with word times. Only spans in which Silero detects speech are transcribed.

    Args:
        languages: languages to choose among (ISO 639-1); empty: all that the model knows.
        known: all that the model knows; empty: not told.

    Raises:
        SetupError: a language is to be chosen that the model does not know.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        languages: tuple[str, ...] = (),
        known: tuple[str, ...] = (),
        device: SpeechDevice = SpeechDevice(),  # noqa: B008 - immutable
    ) -> None:
        if unknown := [one for one in languages if known and one not in known]:
            raise SetupError(
                f"{name} does not know the language {', '.join(unknown)}: take codes such as "
                f"{', '.join(known[:5])}; `homer models --json` lists all"
            )
        self.name = name
        self.languages = languages or known
        self._allowed = languages
        self._folder, self._device = folder, device
        self._lock = Lock()

    def transcribe(self, samples: Samples) -> list[Speech]:
        """Transcribe 16 kHz mono ``samples``; return an empty list if nobody speaks.

        A loop of the decoder is cut down to what was said, and speech without text stands for
        the rest.
        """
        if len(samples) < SHORTEST_S * SAMPLE_HZ:
            return []
        audio = np.ascontiguousarray(samples, np.float32)
        if not SileroActivity().spans(audio, SPOKEN):
            # Whisper cannot guess the language of silence.
            return []
        with self._lock:
            segments, language = self._decoded(audio, BEAM)
            unsaid = find_loops(_words_of(segments), audio)
            if unsaid:
                # Another decoding seldom falls into the same loop; of what was really said so
                # often, both tell the same.
                others, _ = self._decoded(audio, 1)
                less = find_loops(_words_of(others), audio)
                if sum(map(len, less)) < sum(map(len, unsaid)):
                    segments, unsaid = others, less
        return speech_of(segments, unsaid, language, len(samples) / SAMPLE_HZ)

    def _decoded(self, audio: Samples, beams: int) -> tuple[list[Any], str]:
        model, windows = self._model
        windows.reset()
        # The likeliest allowed language; None lets Whisper choose among all.
        if len(self._allowed) < 2:
            language = self._allowed[0] if self._allowed else None
        else:
            _, _, likely = self._model[0].detect_language(audio=audio, vad_filter=True)
            allowed = [(chance, code) for code, chance in likely if code in self._allowed]
            language = max(allowed)[1] if allowed else self._allowed[0]
        segments, info = model.transcribe(
            audio,
            language=language,
            beam_size=beams,
            temperature=0.0,
            condition_on_previous_text=False,
            word_timestamps=True,
            vad_filter=True,
            vad_parameters={"threshold": SPOKEN},
        )
        return list(segments), info.language

    @cached_property
    def _model(self) -> tuple[WhisperModel, Windows]:
        make_idle_threads_sleep()
        limit_arenas()
        # After that: OpenMP reads the environment when it is loaded.
        from faster_whisper import WhisperModel

        model = WhisperModel(
            str(self._folder),
            device=self._device.device,
            device_index=self._device.number,
            compute_type=self._device.compute_type,
            cpu_threads=threads_allowed(),
            num_workers=1,
            local_files_only=True,
        )
        return model, Windows(model)


def _words_of(segments: Sequence[Any]) -> list[Any]:
    return [word for segment in segments for word in segment.words or ()]


_BREATH_WORDS = 3
"""More words than these are no breath: if they are unsure, it is said that they were not heard."""


def find_loops(words: Sequence[Any], audio: Samples) -> list[range]:
    """Find the words that are repeated more often than the sound has them.

    Args:
        words: in order, each with ``start`` and ``end`` in seconds and its text, ``word``.
        audio: 16 kHz mono sound that they were recognised in.

    Returns:
        The words of each loop from its first repetition on that was not spoken: one of its words
        takes no time, is spoken too fast, or is not to be heard.
    """
    texts = [re.sub(r"\W", "", word.word).casefold() for word in words]
    frame = int(_FRAME_S * SAMPLE_HZ)
    whole = audio[: len(audio) // frame * frame].reshape(-1, frame).astype(np.float64)
    power = np.square(whole).mean(axis=1)
    least = _LEAST_LOUDNESS**2 * np.quantile(power, 0.95)
    loops, at = list[range](), 0
    while at < len(words):
        best = (1, at)
        for count in range(1, min(_LONGEST_REPEATED, (len(texts) - at) // REPEATED) + 1):
            until = at + count
            while until < len(texts) and texts[until] == texts[until - count]:
                until += 1
            if until - at >= REPEATED * count and until > best[1]:
                best = (count, until)
        size, end = best
        begins, spoken = range(at, end, size), list[bool]()
        for begin in begins:
            repetition = words[begin : min(begin + size, end)]
            seconds = float(repetition[-1].end - repetition[0].start)
            spoken.append(
                len(repetition) <= _MOST_WORDS_A_SECOND * seconds
                and all(
                    word.end - word.start >= _LEAST_WORD_S
                    and power[int(word.start / _FRAME_S) : int(word.end / _FRAME_S) + 1].max(
                        initial=0
                    )
                    >= least
                    for word in repetition
                )
            )
        # One word of a chant may be misplaced; of a loop, most of what follows is.
        loops += [
            range(begin, end)
            for n, begin in enumerate(begins)
            if not spoken[n] and 2 * sum(spoken[n:]) < len(spoken) - n
        ][:1]
        at = max(end, at + 1)
    return loops


def speech_of(
    segments: Sequence[Any], unsaid: Sequence[range], language: str, end_s: float
) -> list[Speech]:
    """Convert segments of faster-whisper, without loops and last words that are invented.

    Args:
        unsaid: the words of loops, counted over all segments.
        language: of the recording (ISO 639-1).
        end_s: the length of the recording in seconds.
    """

    def timed(start: float, end: float, text: str) -> Word:
        start_ms, end_ms = (round(1000 * min(max(0.0, at), end_s)) for at in (start, end))
        return Word(start_ms, end_ms, text)

    words = _words_of(segments)
    left_out = {number for loop in unsaid for number in loop}
    speech, number, last = list[Speech](), 0, segments[-1].seek if segments else 0
    lost = [(words[loop[0]].start, words[loop[-1]].end) for loop in unsaid]
    unsure = [0 < s.seek == last and s.avg_logprob < _UNSURE for s in segments]
    ending = next((s for s, no in zip(reversed(segments), unsure[::-1], strict=True) if not no), 0)
    for segment, is_unsure in zip(segments, unsure, strict=True):
        kept = []
        for word in segment.words or ():
            if number not in left_out:
                kept.append(timed(word.start, word.end, word.word))
            number += 1
        # Of the breath after the last sentence, decoded by itself, "Thank you" is made.
        if is_unsure:
            if len(kept) > _BREATH_WORDS:
                lost.append((segment.words[0].start, segment.words[-1].end))
            continue
        while segment is ending and kept and kept[-1].end_ms <= kept[-1].start_ms:
            kept.pop()
        if any(word.text.strip() for word in kept):
            confidence = min(1.0, math.exp(segment.avg_logprob))
            speech.append(Speech(tuple(kept), language, confidence))
    speech += [Speech((timed(start, end, ""),), language, 0.0) for start, end in lost]
    return sorted(speech, key=lambda one: one.words[0].start_ms)


MEL_BINS = 80
SHORTEST_VOICE_S = 0.4
INT16 = 32_768.0


class WeSpeakerEncoder:
    """Embeddings of 256 dimensions of a speaker's voice.

    Args:
        folder: holds ``model.onnx``.
    """

    name = "wespeaker-resnet34"
    same_speaker = VOICES["wespeaker"]

    def __init__(self, folder: Path, device: str = CPU) -> None:
        # Samples are short and many: they run in parallel, each in one thread.
        self._session = open_session(folder / "model.onnx", threads=1, arena=False, device=device)

    def embed(self, samples: Samples) -> Vector:
        """Embed the voice of at least 0.4 s of 16 kHz speech; shape (256,), L2-normalised.

        Raises:
            ModelError: The samples are too few to embed a voice.
        """
        if len(samples) < SHORTEST_VOICE_S * SAMPLE_HZ:
            raise ModelError(
                f"a voice needs {SHORTEST_VOICE_S} s of speech, this is {len(samples)} samples"
            )
        options = knf.FbankOptions()
        options.frame_opts.samp_freq = SAMPLE_HZ
        options.frame_opts.dither = 0.0
        options.frame_opts.window_type = "hamming"
        options.mel_opts.num_bins = MEL_BINS
        bank = knf.OnlineFbank(options)
        bank.accept_waveform(SAMPLE_HZ, (np.asarray(samples, np.float32) * INT16).tolist())
        bank.input_finished()
        frames = np.stack([bank.get_frame(index) for index in range(bank.num_frames_ready)])
        features = np.asarray(frames - frames.mean(axis=0), np.float32)
        (rows,) = self._session.run(None, {"input_features": features[None]})
        vector = np.asarray(rows[0], np.float32)
        return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)
