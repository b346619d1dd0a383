"""How far what was found supports the options of a question, and what answers an open one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from domain.memories import MemoryView
from domain.search import Quote, Weighed, quote_of
from models.ports import embed_queries
from retrieval.people_in_query import NOBODY
from retrieval.terms import terms
from retrieval.word_scores import WordScores
from strategies.asked import Pieces, ask
from strategies.event_documents import EventDocument, FoundDocument

if TYPE_CHECKING:
    from domain.asking import Evidence
    from models.ports import TextEmbedder, Vector
    from retrieval.closeness import CosineScale
    from strategies.document_index import DocumentIndexes

COMPARED = 6
"""Lines of a document that are compared with a query."""
QUOTED = 2
"""Sentences of a piece that an answer quotes at most."""
QUOTED_FROM = 3
"""Documents that an answer quotes from at most."""


def weigh_documents(
    text: TextEmbedder,
    documents: Iterable[EventDocument],
    query: str,
    options: Sequence[str],
    view: MemoryView,
    shown: Iterable[FoundDocument],
) -> tuple[Weighed, ...]:
    """Return how far documents support options: the best of all, and those that are shown."""
    if not options:
        return ()
    every = [*documents]
    pieces = Pieces(
        [one.ref for one in every],
        [one.text for one in every],
        [one.span for one in every],
        np.array([one.vector for one in every]),
        [WordScores([one.terms for one in every])],
    )
    # The documents have people by the names that they have now.
    asked = ask(text, query, options, view, NOBODY)
    return asked.supported(pieces).weighed({one.document.ref for one in shown})


def quotation(
    indexes: DocumentIndexes, query: str, found: Sequence[FoundDocument]
) -> tuple[Quote, ...]:
    """Quote the lines nearest to a query from the document that has the nearest of the best."""
    if not query:
        return ()
    (vector,) = embed_queries(indexes.text, [query])
    best = [
        (one.piece, one.document.best_lines(terms(query), COMPARED)) for one in found[:QUOTED_FROM]
    ]
    return quote_nearest(indexes.text, indexes.scale, vector, best)


def quote_nearest(
    text: TextEmbedder,
    scale: CosineScale,
    vector: Vector,
    pieces: Iterable[tuple[Evidence, Sequence[str]]],
) -> tuple[Quote, ...]:
    """Quote the sentences nearest to a query from the piece that has the nearest.

    Args:
        text: embeds sentences.
        vector: (D,), the query's.
        pieces: each with its sentences.
    """
    best: Quote | None = None
    for piece, sentences in pieces:
        cosines = text.embed(list(sentences)) @ vector
        order = sorted(np.argsort(-cosines, kind="stable")[:QUOTED].tolist())
        score = scale.nearness(float(cosines.max()))
        if best is None or score > best.score:
            best = quote_of(piece, " ".join(sentences[n].strip() for n in order), score)
    return () if best is None else (best,)
