"""Structural searches: people, voices, beginning and end, first and last mentions, order."""

from retrieval.structural.search import structural
from retrieval.structural.whereabouts import where_last_seen

__all__ = ["structural", "where_last_seen"]
