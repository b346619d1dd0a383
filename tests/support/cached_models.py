"""The real local models, each called once a run for the same picture or sound.

Tests watch the same made-up videos over and over, and reading a picture's text takes most of a
second. A model's answer is cached for all tests of a run, whichever worker asked.
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
    SoundClassifier,
    SpeakerEncoder,
    SpeechRecognizer,
    VoiceActivity,
)
from models.profile import Profile
from models.toolbox import Toolbox

Model = TypeVar("Model")


class CachedModels(Toolbox):
    """A toolbox whose models that perceive cache their answers in a folder.

    ``anew`` has the same models without a cache, for tests of the models themselves.
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
        return cached(self.anew.speech, self._folder)

    @cached_property
    def activity(self) -> VoiceActivity:
        return cached(self.anew.activity, self._folder)

    @cached_property
    def faces(self) -> FaceEngine:
        return cached(self.anew.faces, self._folder)

    @cached_property
    def speaker(self) -> SpeakerEncoder:
        return cached(self.anew.speaker, self._folder)

    @cached_property
    def screen(self) -> ScreenReader:
        return cached(self.anew.screen, self._folder)

    @cached_property
    def sounds(self) -> SoundClassifier | None:
        found = self.anew.sounds
        return found and cached(found, self._folder)

    @cached_property
    def objects(self) -> ObjectDetector | None:
        found = self.anew.objects
        return found and cached(found, self._folder)


def cached(model: Model, folder: Path) -> Model:
    """Return the same model, which reads an answer from ``folder`` where it gave it before."""
    return cast("Model", _Cached(model, folder))


class _Cached:
    def __init__(self, model: Any, folder: Path) -> None:
        self._model, self._folder = model, folder

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            if len(arguments) != 1 or not isinstance(arguments[0], np.ndarray):
                return found(*arguments)
            path = self._folder / _key(type(self._model).__name__, name, arguments[0])
            if not path.exists():
                aside = path.with_suffix(f".{os.getpid()}")
                aside.write_bytes(pickle.dumps(found(*arguments)))
                aside.replace(path)
            return pickle.loads(path.read_bytes())  # noqa: S301 - written above

        return call


def _key(model: str, method: str, argument: np.ndarray[Any, Any]) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(argument).data)
    digest.update(f"{argument.shape} {argument.dtype}".encode())
    return f"{model}-{method}-{digest.hexdigest()}"
