"""Entities and triples of a caption by rules of English; other languages have none; pure."""

from __future__ import annotations

from retrieval.english.clauses import Triple
from retrieval.english.phrases import NamedEntity
from retrieval.english.sentences import Known, StatedFacts, extract_sentence
from retrieval.extracts import caption_sentences


def extract(caption: str, known: Known) -> StatedFacts:
    """Return the entities and triples of a caption.

    Args:
        caption: sentences; one that begins with a name and a colon is said by that person.
        known: who is known of the video.
    """
    entities: dict[str, NamedEntity] = {}
    triples: dict[Triple, None] = {}
    for sentence in caption_sentences(caption):
        found = extract_sentence(sentence, known)
        for entity in found.entities:
            entities.setdefault(entity.name, entity)
        triples.update(dict.fromkeys(found.triples))
    return StatedFacts(entities=tuple(entities.values()), triples=tuple(triples))
