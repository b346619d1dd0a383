"""The WorldMM strategy: captions at several time scales, a graph for each, and semantic memory."""
