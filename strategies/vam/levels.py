"""The levels of VAM's documents."""

from __future__ import annotations

EVENT = "event"
"""The documents of events, numbered in order of time."""
OPEN = "open"
"""What came since the last event, one document that is written anew."""
SUMMARY = "summary"
"""The level of summaries begins with this; after it come the structure and the granularity."""
