"""Retrieval from memory: four search modes over one ranking, restricted to a ``MemoryView``."""
