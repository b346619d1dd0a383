"""The parts of VAM that can be switched off, to measure what each adds."""

from __future__ import annotations

SUMMARIES, LOOKING = "summaries", "looking"

PARTS = {
    SUMMARIES: "none are made, found or begun with",
    LOOKING: "frames are not inspected",
}

SUMMARY = "summary"
"""The level of summaries begins with this; after it come the structure and the granularity."""
