"""Encodes images as JPEG bytes, named by their content."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import cv2
import numpy as np

from domain.errors import BlobGone
from store.blobs import image_size

if TYPE_CHECKING:
    from models.ports import Image


MAX_PIXELS = 1 << 26
"""Of an image that is decoded, which takes three bytes for each."""


def encode_rgb(image: Image, quality: int) -> bytes:
    """Encode an image (H x W x 3 RGB) as JPEG."""
    bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    return cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def shrunk(image: Image, scale: float) -> Image:
    """Return an image (H x W x C) made smaller by ``scale``; as it is from 1 on."""
    if scale >= 1:
        return image
    height, width = (max(1, round(side * scale)) for side in image.shape[:2])
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


class Blobs(dict[str, bytes]):
    """JPEGs by the SHA-256 of their bytes."""

    def add(self, image: Image, quality: int) -> str:
        """Encode ``image`` (H x W x 3 RGB), store it, and return its SHA-256."""
        data = encode_rgb(image, quality)
        name = hashlib.sha256(data).hexdigest()
        self[name] = data
        return name


def decode_image(data: bytes) -> Image | None:
    """Decode an image to H x W x 3 RGB; None if it cannot be read."""
    bgr = decode_bgr(data)
    return None if bgr is None else np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8)


def decode_bgr(data: bytes, *, grey: bool = False) -> Image | None:
    """Decode an image to H x W x 3 BGR, or to H x W; None if it cannot be read, or is too large.

    A few kilobytes can state a size that fills memory, so the header is read first.
    """
    try:
        width, height = image_size(data)
    except ValueError:
        return None
    if width * height > MAX_PIXELS:
        return None
    kind = cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR
    image = cv2.imdecode(np.frombuffer(data, np.uint8), kind)
    return None if image is None else np.asarray(image, np.uint8)


def decode_stored(data: bytes) -> Image:
    """Decode a stored image to H x W x 3 BGR.

    Raises:
        BlobGone: it cannot be read.
    """
    image = decode_bgr(data)
    if image is None:
        raise BlobGone("a stored image cannot be read: homer check says which")
    return image


THUMBNAIL_QUALITY = 80


def shrink_jpeg(data: bytes, side: int) -> tuple[bytes, int, int]:
    """Encode a JPEG anew with ``side`` pixels on its longest side; return it, width and height.

    Raises:
        BlobGone: it cannot be read.
    """
    return encode_shrunk(decode_stored(data), side, THUMBNAIL_QUALITY)


def encode_shrunk(image: Image, side: int, quality: int) -> tuple[bytes, int, int]:
    """Encode an image (H x W x 3 BGR) as ``shrink_jpeg`` does."""
    height, width = image.shape[:2]
    scale = side / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, encoded = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return encoded.tobytes(), *size
