"""Speaker embeddings by a WeSpeaker ResNet34 trained on VoxCeleb."""

from __future__ import annotations

from pathlib import Path

import kaldi_native_fbank as knf
import numpy as np

from domain.errors import ModelError
from models.devices import CPU
from models.onnx import open_session
from models.ports import Samples, Vector
from models.specs import VOICES
from models.whisper import SAMPLE_HZ

MEL_BINS = 80
SHORTEST_S = 0.4
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
        if len(samples) < SHORTEST_S * SAMPLE_HZ:
            raise ModelError(
                f"a voice needs {SHORTEST_S} s of speech, this is {len(samples)} samples"
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
