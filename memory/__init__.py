"""Turns percepts into memory: clip memories, the event graph, and the deletion of spans."""
