"""Folders with a CLIP or SigLIP model in ONNX, as their makers publish them, and on the hub."""

from __future__ import annotations

from pathlib import Path

from domain.errors import WeightsMissing
from models.hub import HubModel

FILES = ("vision_model.onnx", "text_model.onnx", "tokenizer.json", "preprocessor_config.json")
CONFIG = "config.json"
"""It is not required, but says which of the two a model is."""
TOWERS = "onnx"
"""A folder inside the folder, in which exports often have the two towers. A tower that lies in both
is taken from outside of it."""


def hub_image_model(name: str) -> HubModel:
    """Return an image-text model of the hub, by its name there."""
    required = tuple((file, f"{TOWERS}/{file}") for file in FILES[:2])
    return HubModel(name, "images", (*required, *((file,) for file in FILES[2:])), (CONFIG,))


def name_of(folder: str) -> str:
    """Return the name in the store of the model in a folder of that name."""
    return f"clip:{folder}"


def missing_files(folder: Path) -> list[str]:
    """Return the files that a folder lacks."""
    return [name for name in FILES if not has_file(folder, name)]


def has_file(folder: Path, name: str) -> bool:
    """Check whether a folder has a file, perhaps in the folder for towers."""
    return _place(folder, name).is_file()


def find_files(folder: Path) -> list[Path]:
    """Return the files of a folder's model, in the order of ``FILES``.

    Raises:
        WeightsMissing: One is missing; the message says which, and where to put it.
    """
    lacking = missing_files(folder)
    if lacking:
        raise WeightsMissing(
            f"{folder} lacks {', '.join(lacking)}: put there the ONNX export of a CLIP or SigLIP "
            "model (vision_model.onnx and text_model.onnx, perhaps in onnx/, tokenizer.json, "
            "preprocessor_config.json), or leave `images` out of the profile"
        )
    return [_place(folder, name) for name in FILES]


def _place(folder: Path, name: str) -> Path:
    inner = folder / TOWERS / name
    return inner if not (folder / name).is_file() and inner.is_file() else folder / name
