"""Strategies, one folder each: what it builds of a video, its tools and its policy."""
