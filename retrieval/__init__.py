"""Finding things in memory: four modes over one ranking, each bounded by a ``MemoryView``."""
