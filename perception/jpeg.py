"""Images as JPEG bytes, named by what is in them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import cv2

if TYPE_CHECKING:
    from models.ports import Image


class Blobs(dict[str, bytes]):
    """JPEGs by the SHA-256 of their bytes."""

    def add(self, image: Image, quality: int) -> str:
        """Encode ``image`` (H x W x 3 RGB), keep it, and return its name."""
        bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
        _, encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])
        data = encoded.tobytes()
        name = hashlib.sha256(data).hexdigest()
        self[name] = data
        return name
