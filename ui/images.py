"""Stored images as bytes."""

from __future__ import annotations

from domain.errors import HomerError
from store.database import Store


def image_of(store: Store, blob: str | None) -> bytes:
    """A stored image, empty where it is not there or damaged."""
    try:
        return store.blobs.get(blob) if blob else b""
    except (HomerError, OSError):
        return b""
