"""How far what was found supports the options of a question, and what answers an open one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from domain.search import Extract, Weighed
from domain.texts import make_storable
from models.ports import embed_queries
from retrieval.terms import terms
from strategies.event_documents import EventDocument, EventDocuments, FoundDocument, covered

if TYPE_CHECKING:
    from models.ports import Vector
    from strategies.document_index import DocumentIndexes

COMPARED = 6
"""Lines of a document that are compared with options and quoted from."""
QUOTED = 2
"""Lines of a document that an answer quotes at most."""
QUOTED_FROM = 3
"""Documents that an answer quotes from at most."""
WORDS = 4.0
"""How much more the words of an option weigh than the likeness of vectors."""
DIGITS = 4


class OptionWeights:
    """Scores of documents by option: its rare words that they have, and between equals likeness.

    Args:
        indexes: has the text model.
        documents: those that were searched, which say how rare words are.
        query: the question.
        options: of the question.
    """

    temperature = 1.0

    def __init__(
        self,
        indexes: DocumentIndexes,
        documents: Sequence[EventDocuments],
        query: str,
        options: Sequence[str],
    ) -> None:
        self._indexes, self._query = indexes, query
        self._options = [make_storable(option) for option in options]
        self._documents = documents

    def weigh(self, found: Sequence[FoundDocument]) -> tuple[Weighed, ...]:
        """Return the scores of each document by option; none without options."""
        if not self._options or not found:
            return ()
        claims = [f"{self._query} {option}" for option in self._options]
        vectors = embed_queries(self._indexes.text, claims)
        weights = [self._documents[0].rarities(option) for option in self._options]
        asked = set(terms(self._query))
        own = [{t: w for t, w in each.items() if t not in asked} or each for each in weights]
        about = self._documents[0].rarities(self._query)
        return tuple(self._weighed(one.document, vectors, own, about) for one in found)

    def _weighed(
        self,
        document: EventDocument,
        claims: Vector,
        own: Sequence[dict[str, float]],
        about: dict[str, float],
    ) -> Weighed:
        words = {term for weights in (*own, about) for term in weights}
        lines = self._indexes.text.embed(document.best_lines(words, COMPARED))
        cosines = (lines @ claims.T).max(axis=0)
        scores = [
            WORDS * best_line(document, weights, about) + float(cosine)
            for weights, cosine in zip(own, cosines, strict=True)
        ]
        return Weighed(ref=document.ref, scores=tuple(round(one, DIGITS) for one in scores))


def best_line(document: EventDocument, own: dict[str, float], about: dict[str, float]) -> float:
    """Return how well the best line of a document has the words of an option and the question.

    A line about the option that is also about the question counts most.
    """
    return max(
        covered(line, own) * (0.5 + 0.5 * covered(line, about)) for line in document.line_terms
    )


def quotation(
    indexes: DocumentIndexes, query: str, found: Sequence[FoundDocument]
) -> Extract | None:
    """Quote the lines nearest to a query from the document that has the nearest of the best."""
    if not query:
        return None
    (vector,) = embed_queries(indexes.text, [query])
    quotes = [_quoted(indexes, query, vector, one) for one in found[:QUOTED_FROM]]
    return max(quotes, key=lambda quote: quote.score, default=None)


def _quoted(indexes: DocumentIndexes, query: str, vector: Vector, found: FoundDocument) -> Extract:
    lines = found.document.best_lines(terms(query), COMPARED)
    cosines = indexes.text.embed(lines) @ vector
    order = sorted(np.argsort(-cosines, kind="stable")[:QUOTED].tolist())
    piece = found.piece
    return Extract(
        text=" ".join(lines[number] for number in order),
        refs=(piece.ref,),
        video=piece.video,
        span=piece.span,
        score=indexes.scale.nearness(float(cosines.max())),
    )
