"""Whisper models that are not of the manifest: a folder, or a model of the hub."""

from __future__ import annotations

from pathlib import Path

from domain.errors import WeightsMissing
from models.hub import HubModel, is_hub_name

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
        known, at, revision = name.partition("@")
        name = f"{_known_name(known)}{at}{revision}"
    required = tuple((file,) for file in FILES)
    return HubModel(
        name,
        "speech",
        (*required, VOCABULARIES),
        ("preprocessor_config.json",),
        form="a Whisper model for CTranslate2",
    )


def _known_name(name: str) -> str:
    # Slow to import, and only profiles with a model of the hub need it.
    from faster_whisper.utils import _MODELS

    if name not in _MODELS:
        raise WeightsMissing(
            f"there is no speech model {name!r}: name a folder (/..., ./..., ~/...), OWNER/NAME of "
            f"the hub, or one of {', '.join(_MODELS)}"
        )
    return str(_MODELS[name])


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
