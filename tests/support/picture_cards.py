"""Cards to look at: a colour, a white shape, and a word or number that nobody says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from perception.images import Blobs

SIZE = (320, 240)
COLOURS = {
    "red": (200, 30, 30),
    "green": (30, 150, 50),
    "blue": (40, 60, 210),
    "yellow": (230, 210, 40),
    "purple": (130, 40, 160),
    "orange": (240, 130, 20),
    "pink": (245, 150, 190),
    "brown": (110, 70, 35),
    "cyan": (60, 200, 220),
    "grey": (120, 120, 120),
}
SHAPES = ("circle", "square", "triangle")


@dataclass(frozen=True)
class Card:
    """What a picture shows."""

    colour: str
    text: str
    shape: str


def draw(card: Card) -> NDArray[np.uint8]:
    """Return the picture of a card, RGB."""
    width, height = SIZE
    image = np.full((height, width, 3), COLOURS[card.colour], dtype=np.uint8)
    white = (255, 255, 255)
    if card.shape == "circle":
        cv2.circle(image, (width // 2, 75), 48, white, -1, cv2.LINE_AA)
    elif card.shape == "square":
        cv2.rectangle(image, (width // 2 - 46, 29), (width // 2 + 46, 121), white, -1)
    else:
        corners = np.array([(width // 2, 25), (width // 2 - 55, 120), (width // 2 + 55, 120)])
        cv2.fillPoly(image, [corners], white, cv2.LINE_AA)
    cv2.rectangle(image, (20, 150), (width - 20, 220), (10, 10, 10), -1)
    scale, thick = 1.6, 3
    (wide, tall), _ = cv2.getTextSize(card.text, cv2.FONT_HERSHEY_SIMPLEX, scale, thick)
    place = ((width - wide) // 2, 185 + tall // 2)
    cv2.putText(image, card.text, place, cv2.FONT_HERSHEY_SIMPLEX, scale, white, thick, cv2.LINE_AA)
    return image


def jpeg(card: Card) -> bytes:
    _, data = cv2.imencode(".jpg", draw(card)[:, :, ::-1])
    return bytes(data)


def make_slides(path: Path, cards: list[Card], seconds: int, fps: int = 5) -> Path:
    """Write a video without sound that shows each card for so many seconds."""
    with av.open(str(path), "w") as out:
        stream: Any = out.add_stream("libx264", rate=fps, options={"preset": "ultrafast"})
        stream.width, stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        for card in cards:
            picture = av.VideoFrame.from_ndarray(draw(card), format="rgb24")
            for _ in range(seconds * fps):
                picture.pts = None
                for packet in stream.encode(picture):
                    out.mux(packet)
        for packet in stream.encode(None):
            out.mux(packet)
    return path


def striped_jpeg(second: int, *, dark: bool) -> bytes:
    """Stripes that are dark or bright, with a mark that moves."""
    levels = (10, 40, 25) if dark else (200, 245, 225)
    image = np.repeat(np.array(levels, np.uint8), 20)[None, :, None].repeat(40, 0).repeat(3, 2)
    image = image.copy()
    image[second % 36 : second % 36 + 3, second % 50 : second % 50 + 3] = 128
    blobs = Blobs()
    return blobs[blobs.add(image, 95)]
