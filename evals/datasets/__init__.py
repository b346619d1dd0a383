"""Data sets with questions: published ones as specifications, and a registry by name."""

from evals.datasets.registry import read, source, sources

__all__ = ["read", "source", "sources"]
