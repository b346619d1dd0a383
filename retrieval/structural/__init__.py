"""Structural searches: people, voices, beginning and end, first and last mentions, order."""

from retrieval.structural.search import structural

__all__ = ["structural"]
