"""Models of Hugging Face's hub that a profile names ``OWNER/NAME``: fetched, checked, recorded.

A model's files lie in ``WEIGHTS/NEED/OWNER--NAME/``, with a record of their revision, licence and
digests, against which they are checked before they are loaded. Whoever puts files there by hand has
no record: those are theirs to trust, as in any folder that a profile names.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import ValidationError

from domain.base import Frozen
from domain.errors import WeightsMissing
from models.weights import ANSWER_S, SCRATCH, FileState, file_digest

HUB_NAME = r"[A-Za-z0-9](-?[\w.])*/[\w.](-?[\w.])*(@[0-9a-f]{40})?"
"""The pattern of a model's name on the hub, with the revision that is fetched."""
_HUB_NAME = re.compile(HUB_NAME)
SEPARATOR = "--"
"""What stands for the slash of a name in the name of its folder. The hub allows it in no name, so
no two models share a folder."""
RECORD = "hub.json"
PROJECTOR = "mmproj"
"""What llama.cpp's projectors have in their names, and no other file."""
MAX_BYTES = 8_000_000_000
"""All files of a model together: more would hardly run on a CPU."""
ENDPOINT = "HF_ENDPOINT"
"""The environment variable that names another hub than huggingface.co."""


class HubRecord(Frozen):
    """What was fetched: ``digests`` is the SHA-256 of each file by its path."""

    model: str
    revision: str
    licence: str
    digests: dict[str, str]


@dataclass(frozen=True)
class HubModel:
    """A model on the hub.

    Attributes:
        name: ``OWNER/NAME@REVISION``; what lies under a name without one was put there by hand.
        need: What it is for: the profile's key, and the folder below the weights folder.
        required: Its files; each by the places where an export may have it, the preferred first, as
            patterns of ``fnmatch`` in lower case.
        optional: Files that are fetched where the model has them.
        form: What its files are.
    """

    name: str
    need: str
    required: tuple[tuple[str, ...], ...]
    optional: tuple[str, ...] = ()
    form: str = "an export to ONNX"

    def folder(self, weights: Path) -> Path:
        """Return where its files lie."""
        return weights / self.need / folder_name(self.name)

    def file_paths(self, weights: Path) -> list[Path]:
        """Return its required files, those that were fetched and checked if any were.

        Raises:
            WeightsMissing: as ``ready_folder``.
        """
        folder, record = self.ready_folder(weights), self.record(weights)
        there = record.digests if record else {one.name for one in folder.iterdir()}
        return [folder / (_first(places, there) or "") for places in self.required]

    def missing(self, weights: Path) -> list[str]:
        """Return the required files, and those on record, that are not in its folder."""
        folder, record = self.folder(weights), self.record(weights)
        there = {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}
        required = [_told(places) for places in self.required if _first(places, there) is None]
        recorded = record.digests if record else ()
        return required or [path for path in recorded if not (folder / path).is_file()]

    def state(self, weights: Path) -> FileState:
        """Return the worst state of its files: those on record are checked by their digests."""
        if self.missing(weights):
            return FileState.MISSING
        folder, record = self.folder(weights), self.record(weights)
        digests: Mapping[str, str] = record.digests if record else {}
        checked = (file_digest(folder / path) == digest for path, digest in digests.items())
        return FileState.PRESENT if all(checked) else FileState.WRONG

    def record(self, weights: Path) -> HubRecord | None:
        """Return what was fetched; None where the files were put there by hand."""
        path = self.folder(weights) / RECORD
        try:
            return HubRecord.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise WeightsMissing(f"{path} cannot be read: delete it") from error

    def licence(self, weights: Path) -> str:
        """Return the licence that the hub states, or that it is not known."""
        record = self.record(weights)
        return record.licence if record else "not known"

    def size(self, weights: Path) -> int:
        """Return the bytes of its files that are there."""
        files = (path for path in self.folder(weights).rglob("*") if path.is_file())
        return sum(path.stat().st_size for path in files)

    def ready_folder(self, weights: Path) -> Path:
        """Return its folder, fetched where a file is missing.

        Raises:
            WeightsMissing: A file is missing and cannot be fetched, or is another one than was
                fetched; the message says which, and where to put it.
        """
        if self.missing(weights):
            self.fetch(weights)
        folder = self.folder(weights)
        if self.state(weights) is FileState.WRONG:
            raise WeightsMissing(
                f"a file of the model {self.name} in {folder} is not the one that was fetched: "
                "delete the folder, and run: homer models pull"
            )
        return folder

    def fetch(self, weights: Path) -> HubRecord:
        """Fetch its files from the hub; they appear once all are there and checked.

        The record comes first: files that an interrupted run did not move are missed by it.

        Raises:
            WeightsMissing: There is no network, no such model, or it lacks a file.
        """
        folder = self.folder(weights)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=weights) as scratch:
                record = self._download(Path(scratch))
                (Path(scratch) / RECORD).write_text(record.model_dump_json(indent=1), "utf-8")
                for path in (RECORD, *record.digests):
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (Path(scratch) / path).replace(folder / path)
        except WeightsMissing:
            raise
        # An edge: the errors of the HTTP client are others in each version.
        except Exception as error:
            files = ", ".join(map(_told, self.required))
            raise WeightsMissing(
                f"the model {self.name!r} (`{self.need}` in the profile) is not in {folder} and "
                f"cannot be fetched from the hub ({type(error).__name__}): put {files} there, or "
                "run 'homer models pull --profile NAME' with this profile where there is a network"
            ) from error
        return record

    def _download(self, scratch: Path) -> HubRecord:
        """Download the files of the revision, and compare them with what the hub states.

        Raises:
            WeightsMissing: No revision is named, or a file is another one. Of a name alone the hub
                may give other files tomorrow, and its statement of them along with them.
        """
        # Slow to import, and only models that are not here yet need it.
        from huggingface_hub import HfApi, hf_hub_download
        from huggingface_hub.utils.tqdm import disable_progress_bars

        disable_progress_bars()
        endpoint = os.environ.get(ENDPOINT)
        name, _, revision = self.name.partition("@")
        info = HfApi(endpoint).model_info(
            name, revision=revision or None, files_metadata=True, timeout=ANSWER_S
        )
        if info.sha != revision:
            raise WeightsMissing(
                f"name the revision of the model {name!r} that is fetched, such as the newest: "
                f'{self.need} = "{name}@{info.sha}" in the profile'
            )
        files = {file.rfilename: file for file in info.siblings or ()}
        chosen, digests = list(self._chosen(files)), {}
        # Refuse a model that is larger than any that is fetched.
        size = sum(files[path].size or 0 for path in chosen)
        if size > MAX_BYTES:
            raise WeightsMissing(
                f"the model {self.name!r} is {size / 1e9:.1f} GB large, and at most "
                f"{MAX_BYTES / 1e9:.0f} GB are fetched: name a smaller one in the profile, or a "
                "folder that has it"
            )
        for path in chosen:
            fetched = hf_hub_download(
                name, path, revision=revision, local_dir=scratch, endpoint=endpoint
            )
            # What the hub states of a file must be what came.
            copy = Path(fetched)
            meant = files[path]
            digest = file_digest(copy)
            if meant.lfs is not None:
                same = digest == meant.lfs.sha256
            else:
                # The name that git gives to a file, which the hub states of small ones.
                data = copy.read_bytes()
                header = f"blob {len(data)}\0".encode()
                git_blob = hashlib.sha1(header + data, usedforsecurity=False).hexdigest()
                same = meant.blob_id in (None, git_blob)
            if not same:
                raise WeightsMissing(
                    f"{meant.rfilename} is not what the hub states of it: run 'homer models pull' "
                    "again"
                )
            digests[path] = digest
        stated = (tag.removeprefix("license:") for tag in info.tags or () if "license:" in tag)
        licence = next(stated, "not stated")
        return HubRecord(model=self.name, revision=revision, licence=licence, digests=digests)

    def _chosen(self, there: Iterable[str]) -> Iterator[str]:
        """Yield the paths to fetch of those that the hub has, with weights in files of their own.

        Raises:
            WeightsMissing: One that is required is not there.
        """
        known = {path for path in there if ".." not in path.split("/") and path[:1] != "/"}
        for places in self.required:
            path = _first(places, known)
            if path is None:
                raise WeightsMissing(
                    f"the model {self.name!r} has no {_told(places)} on the hub: its files are not "
                    f"what `{self.need}` in a profile takes, {self.form}"
                )
            yield path
            yield from sorted(
                one for one in known if one.startswith((f"{path}_data", f"{path}.data"))
            )
        yield from (path for path in self.optional if path in known)


def hub_language_model(name: str, *, sees: bool) -> HubModel:
    """Return a language model of the hub in llama.cpp's format: the smallest usual quantisation.

    One that ``sees`` has a projector beside it, which turns images into tokens.
    """
    places = ("*q4_k_m*.gguf", "*q4_0*.gguf", "*q8_0*.gguf", "*.gguf")
    projector = tuple(f"*{PROJECTOR}{place}" for place in ("*q8_0*.gguf", "*f16*.gguf", "*.gguf"))
    required = (places, projector) if sees else (places,)
    return HubModel(name, "reader", required, form="a model in llama.cpp's format (GGUF)")


def is_hub_name(name: str) -> bool:
    """Check whether a profile names a model of the hub, not a folder."""
    return _HUB_NAME.fullmatch(name) is not None


def _told(places: Sequence[str]) -> str:
    """Return how a file is told: the place that is preferred, or the widest of patterns."""
    return places[-1] if "*" in places[0] else places[0]


def _first(places: Iterable[str], there: Iterable[str]) -> str | None:
    """Return the first file in order of the patterns of places, then of the alphabet."""
    # Of a model that is split into parts, llama.cpp wants all: none is taken.
    files = sorted(file for file in there if "-of-" not in file)
    matches = (
        file
        for place in places
        for file in files
        if fnmatchcase(file.lower(), place.lower())
        and (PROJECTOR in file.lower()) == (PROJECTOR in place)
    )
    return next(matches, None)


def folder_name(name: str) -> str:
    """Return a model's name as one part of a path."""
    return name.replace("/", SEPARATOR)


# Folders with a CLIP or SigLIP model in ONNX, as their makers publish them, and on the hub.


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


def files_there(folder: Path) -> dict[str, Path]:
    places = ((name, at / name) for at in (folder / TOWERS, folder) for name in (*FILES, CONFIG))
    return {name: path for name, path in places if path.is_file()}


def missing_files(folder: Path) -> list[str]:
    there = files_there(folder)
    return [name for name in FILES if name not in there]
