"""Skills for tests."""

from __future__ import annotations

from typing import Any

from domain.skills import Skill, Topic


def a_skill(name: str = "order-of-events", **more: Any) -> Skill:
    """A skill about questions of order, unless said otherwise."""
    given: dict[str, Any] = {
        "topic": Topic.MODE,
        "description": "Questions about what happened first, next or last",
        "triggers": ("before", "after", "order"),
        "instructions": ("Find both events first, then compare their times.",),
    }
    return Skill(name=name, **(given | more))
