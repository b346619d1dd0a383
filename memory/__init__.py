"""Turns percepts into memory: identities, clip memories, event patches; and searches it."""
