"""Images that searches found, as they are shown to a model: each after its ref and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pydantic import NonNegativeInt

from domain.asking import Evidence, names_image
from domain.base import Frozen
from domain.errors import BlobGone
from domain.settings import IMAGE_TOKENS
from domain.time import format_clock
from domain.trajectory import EvidenceRetrieved

LoadImage = Callable[[str], bytes]
"""Loads a JPEG by its SHA-256; raises ``BlobGone`` if it is missing or damaged."""


class Picture(Frozen):
    """An image that a search found: the SHA-256 of its JPEG, and how evidence names it.

    ``ref`` is "" where a person changed the evidence, so that it is not known which image is whose.
    """

    blob: str
    ref: str = ""
    time_ms: NonNegativeInt = 0

    @property
    def label(self) -> str:
        """Return the text that goes before the image; "" without a ref."""
        return f"[{self.ref}] {format_clock(self.time_ms)}" if self.ref else ""


@dataclass(frozen=True)
class LoadedPictures:
    """Pictures with their files; ``missing`` are the digests of those whose files are gone."""

    pictures: tuple[Picture, ...] = ()
    images: tuple[bytes, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the label of each image."""
        return tuple(picture.label for picture in self.pictures)

    @property
    def refs(self) -> tuple[str, ...]:
        """Return the refs of the images that have one."""
        return tuple(picture.ref for picture in self.pictures if picture.ref)


def pictures_of(event: EvidenceRetrieved) -> tuple[Picture, ...]:
    """Return the images of a search, best first, each with the ref of its evidence."""
    named = [e for e in event.evidence if names_image(e.ref)]
    if len(named) != len(event.images):
        return tuple(Picture(blob=blob) for blob in event.images)
    return tuple(
        Picture(blob=blob, ref=e.ref, time_ms=e.span.start_ms)
        for e, blob in zip(named, event.images, strict=True)
    )


def pictures_found(events: Sequence[EvidenceRetrieved]) -> tuple[Picture, ...]:
    """Return the images of all searches, the latest search's first, each once."""
    return tuple(dict.fromkeys(one for event in reversed(events) for one in pictures_of(event)))


def by_evidence(pictures: Iterable[Picture], evidence: Sequence[Evidence]) -> list[Picture]:
    """Return the pictures that show these pieces of evidence, in their order."""
    by_ref = {picture.ref: picture for picture in pictures if picture.ref}
    return [by_ref[piece.ref] for piece in evidence if piece.ref in by_ref]


def affordable(tokens: int, share: int) -> int:
    """Return how many images fit into one part in ``share`` of the tokens."""
    return max(0, tokens // (share * IMAGE_TOKENS))


def load_pictures(pictures: Iterable[Picture], load: LoadImage) -> LoadedPictures:
    """Load the files of pictures; those that are gone are named."""
    loaded, images, missing = [], [], []
    for picture in pictures:
        try:
            images.append(load(picture.blob))
        except BlobGone:
            missing.append(picture.blob)
        else:
            loaded.append(picture)
    return LoadedPictures(tuple(loaded), tuple(images), tuple(missing))
