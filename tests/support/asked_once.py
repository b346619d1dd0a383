"""The real local models, each asked once a run about the same picture or sound.

Tests watch the same made-up videos over and over, and reading a picture's text takes most of a
second. What a model answered is kept for all tests of a run, whichever worker asked.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from models.ports import (
    FaceEngine,
    ObjectDetector,
    ScreenReader,
    SpeakerEncoder,
    SpeechRecognizer,
    VoiceActivity,
)
from models.profile import Profile
from models.toolbox import Toolbox

Model = TypeVar("Model")


class AskedOnce(Toolbox):
    """A toolbox whose models that perceive look each answer up in a folder first.

    ``anew`` has the same models without that, for tests of the models themselves.
    """

    def __init__(self, profile: Profile, weights: Path, folder: Path) -> None:
        super().__init__(profile, weights)
        self.anew = Toolbox(profile, weights)
        self._folder = folder

    def __reduce__(self) -> Any:
        return self.anew.__reduce__()

    @property
    def recipe(self) -> object:
        return self.anew.recipe

    @cached_property
    def speech(self) -> SpeechRecognizer:
        return once(self.anew.speech, self._folder)

    @cached_property
    def activity(self) -> VoiceActivity:
        return once(self.anew.activity, self._folder)

    @cached_property
    def faces(self) -> FaceEngine:
        return once(self.anew.faces, self._folder)

    @cached_property
    def speaker(self) -> SpeakerEncoder:
        return once(self.anew.speaker, self._folder)

    @cached_property
    def screen(self) -> ScreenReader:
        return once(self.anew.screen, self._folder)

    @cached_property
    def objects(self) -> ObjectDetector | None:
        found = self.anew.objects
        return found and once(found, self._folder)


def once(model: Model, folder: Path) -> Model:
    """The same model, which answers what was asked before from ``folder``."""
    return cast("Model", _Once(model, folder))


class _Once:
    def __init__(self, model: Any, folder: Path) -> None:
        self._model, self._folder = model, folder

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if not callable(found):
            return found

        def asked(*told: Any) -> Any:
            if len(told) != 1 or not isinstance(told[0], np.ndarray):
                return found(*told)
            kept = self._folder / _key(type(self._model).__name__, name, told[0])
            if not kept.exists():
                aside = kept.with_suffix(f".{os.getpid()}")
                aside.write_bytes(pickle.dumps(found(*told)))
                aside.replace(kept)
            return pickle.loads(kept.read_bytes())  # noqa: S301 - written above

        return asked


def _key(model: str, method: str, asked: np.ndarray[Any, Any]) -> str:
    told = hashlib.sha256(np.ascontiguousarray(asked).data)
    told.update(f"{asked.shape} {asked.dtype}".encode())
    return f"{model}-{method}-{told.hexdigest()}"
