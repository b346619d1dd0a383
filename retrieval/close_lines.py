"""The lines of a video that are close to some words in meaning, each by itself."""

from __future__ import annotations

from models.ports import TextEmbedder, embed_queries
from retrieval.closeness import closeness_threshold, cosine_scale
from store.database import Store
from store.queries.candidates import near_lines, view_size
from store.queries.clips import memory_view
from store.queries.encoders import QueryPart, encoders_in_view


def close_lines(store: Store, text: TextEmbedder, video: str, words: str, limit: int) -> list[int]:
    """Return the ids of at most ``limit`` lines, the closest first.

    Lines that are no closer than chance are left out, as are those with vectors of another text
    encoder than ``text``.
    """
    (vector,) = embed_queries(text, [words])
    nearness = cosine_scale(text).nearness
    with store.begin(snapshot=True) as session:
        scopes = memory_view(session, [video]).scopes
        encoders = encoders_in_view(session, scopes, text.name)
        part = QueryPart(text.name, 0, len(vector), encoders.get(text.name, ()))
        found = near_lines(session, scopes, vector, limit, part=part)
        least = closeness_threshold(view_size(session, scopes).lines)
    return [line.id for line in found if nearness(1 - line.distance) >= least]
