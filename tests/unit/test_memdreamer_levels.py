"""Which edges MemDreamer's memory may have."""

from __future__ import annotations

import pytest

from strategies.memdreamer.levels import GRAPH, MACRO, SUPER, is_allowed


@pytest.mark.parametrize(
    ("level", "subject", "label", "target", "allowed"),
    [
        (GRAPH, "PERSON", "PERFORMS", "EVENT", True),
        (GRAPH, "OBJECT", "USES_TOOL", "EVENT", True),
        (GRAPH, "EVENT", "HAPPENS_IN", "LOCATION", True),
        (GRAPH, "EVENT", "BEFORE", "EVENT", True),
        (GRAPH, "TEXT", "ANNOTATES", "OBJECT", True),
        (GRAPH, "PERSON", "NEXT_TO", "GROUP", True),
        (MACRO, "MACRO", "ENABLES", "MACRO", True),
        (SUPER, "SUPER", "LEADS_TO", "SUPER", True),
        (GRAPH, "EVENT", "PERFORMS", "PERSON", False),
        (GRAPH, "PERSON", "BEFORE", "EVENT", False),
        (GRAPH, "PERSON", "LIKES", "PERSON", False),
        (GRAPH, "TEXT", "PERFORMS", "EVENT", False),
        (MACRO, "MACRO", "LEADS_TO", "MACRO", False),
        (SUPER, "SUPER", "CAUSES", "SUPER", False),
        (SUPER, "MACRO", "LEADS_TO", "SUPER", False),
    ],
)
def test_only_an_edge_between_ends_of_its_kinds_is_allowed(
    level: str, subject: str, label: str, target: str, allowed: bool
) -> None:
    assert is_allowed(level, subject, label, target) is allowed
