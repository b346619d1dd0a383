"""Signals: ways to score the relevance of cells; pure functions over arrays."""
