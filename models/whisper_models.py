"""Whisper models that are not of the manifest: a folder, or a name that faster-whisper knows."""

from __future__ import annotations

from pathlib import Path

from domain.errors import WeightsMissing

FILES = ("config.json", "model.bin", "tokenizer.json")
"""What a folder must have; ``vocabulary.json`` or ``vocabulary.txt`` besides."""
_PATHS = ("/", ".", "~")


def is_path(name: str) -> bool:
    """Check whether a profile's ``speech`` is a folder."""
    return name.startswith(_PATHS) or Path(name).is_dir()


def model_name(name: str) -> str:
    """Return how a model is called in the store: the last part of a path or of a hub's name."""
    return f"whisper-{Path(name).name.removeprefix('whisper-')}"


def whisper_folder(name: str, weights: Path) -> Path:
    """Return the folder of a Whisper model for CTranslate2, fetched where it is not there yet.

    Args:
        name: A folder, or a name such as ``large-v3-turbo`` or ``Systran/faster-whisper-small``,
            which faster-whisper fetches from the hub.
        weights: The weights folder; named models are fetched to ``whisper/NAME`` below it.

    Raises:
        WeightsMissing: A file is missing and cannot be fetched; names it and where to put it.
    """
    if is_path(name):
        folder = Path(name).expanduser()
    else:
        folder = weights / "whisper" / name.replace("/", "--")
        if _missing(folder):
            _fetch(name, folder)
    if missing := _missing(folder):
        raise WeightsMissing(f"the speech model {name!r} lacks {missing}: put it into {folder}")
    return folder


def _missing(folder: Path) -> str | None:
    """Return the first file that a folder lacks."""
    lacking = (file for file in FILES if not (folder / file).is_file())
    vocabulary = next(folder.glob("vocabulary.*"), None) if folder.is_dir() else None
    return next(lacking, None if vocabulary else "vocabulary.json")


def _fetch(name: str, folder: Path) -> None:
    # Only models that are not here yet need it.
    from faster_whisper.utils import available_models, download_model

    try:
        folder.mkdir(parents=True, exist_ok=True)
        download_model(name, output_dir=str(folder))
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        files = ", ".join([*FILES, "vocabulary.json"])
        known = f"; known names: {', '.join(available_models())}" if "/" not in name else ""
        raise WeightsMissing(
            f"the speech model {name!r} is not in {folder} and cannot be fetched "
            f"({type(error).__name__}): put {files} there, or fetch it where there is a "
            f"network{known}"
        ) from error
