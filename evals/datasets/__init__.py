"""Data sets with questions: one reader a file, and a registry by name."""

from evals.datasets.registry import read, source, sources

__all__ = ["read", "source", "sources"]
