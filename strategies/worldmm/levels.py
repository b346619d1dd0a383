"""How what WorldMM builds is stored: the levels of nodes and relations."""

from __future__ import annotations

from strategies.worldmm.settings import SECOND

SEMANTIC = "semantic"
"""The level of relations that last."""
MENTIONED = "is mentioned"
"""The predicate that joins an entity, as both ends, to a caption that states nothing of it."""


def level_of(scale_ms: int) -> str:
    """Return how the level of a scale is stored."""
    return f"{scale_ms // SECOND} s"
