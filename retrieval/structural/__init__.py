"""Searches that answer from structure: people, voices, the beginning, the end, first and last."""

from retrieval.structural.search import structural

__all__ = ["structural"]
