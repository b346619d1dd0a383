"""The lines of a view that are close to some words in meaning, each by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from domain.memories import Scope
from models.ports import TextEmbedder, embed_queries
from retrieval.closeness import closeness_threshold, cosine_scale
from store.queries.candidates import near_lines
from store.queries.encoders import part_of_encoder
from store.queries.view_conditions import Reader
from store.queries.view_sizes import count_lines


def embed_words(text: TextEmbedder, words: str) -> NDArray[np.floating]:
    """Return the unit vector (D,) of some words that are sought."""
    (vector,) = embed_queries(text, [words])
    return np.asarray(vector)


def close_lines(
    database: Reader,
    text: TextEmbedder,
    scopes: Sequence[Scope],
    vector: NDArray[np.floating],
    limit: int,
) -> list[int]:
    """Return the ids of at most ``limit`` lines in view, the closest to a vector (D,) first.

    Lines that are no closer than chance are left out, as are those with vectors of another text
    encoder than ``text``.
    """
    part = part_of_encoder(database, scopes, text.name, len(vector))
    found = near_lines(database, scopes, vector, limit, part=part)
    least = closeness_threshold(count_lines(database, scopes))
    nearness = cosine_scale(text).nearness
    return [line.id for line in found if nearness(1 - line.distance) >= least]
