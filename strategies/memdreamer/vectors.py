"""Vectors of texts with the precision that they are stored in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agent.builder import Embed

if TYPE_CHECKING:
    from domain.built import Vector


def halved(embed: Embed, texts: Sequence[str]) -> list[Vector]:
    """Return the unit vector of each text, (D,), in half precision as in the store.

    So a build that is resumed compares the same numbers as one that goes on.
    """
    found = embed(texts) if texts else ()
    return [np.asarray(row, dtype=np.float16).astype(np.float32) for row in found]
