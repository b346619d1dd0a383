"""Entities and triples of captions without a language model."""

from __future__ import annotations

from collections.abc import Sequence

from domain.stated import StatedFacts
from models.sentences import SentenceParser
from retrieval.english import Known, joined_facts, stated_facts
from retrieval.extracts import caption_sentences


def extract(parser: SentenceParser, captions: Sequence[str], known: Known) -> list[StatedFacts]:
    """Return the entities and triples of each caption.

    Args:
        captions: sentences; one that begins with a name and a colon is said by that person.
        known: who is known of the video.

    Raises:
        WeightsMissing: the parser's files are not there.
    """
    sentences = [caption_sentences(caption) for caption in captions]
    # Captions of coarser scales quote those of finer ones: each sentence is read once.
    distinct = list(dict.fromkeys(one for caption in sentences for one in caption))
    facts = dict(zip(distinct, stated_facts(parser, distinct, known), strict=True))
    return [joined_facts(facts[one] for one in caption) for caption in sentences]
