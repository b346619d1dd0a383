"""How what MemDreamer builds is stored: levels of nodes, kinds of vertices, labels of edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

MACRO, SUPER, ROOT, EVENT, TEXT = "macro", "super", "root", "event", "text"
"""Levels of nodes: macro events, super events, the whole video, micro-events, screen text."""
GRAPH = "graph"
"""The level of relations inside a macro event; others have the level of their ends."""

PERSON, OBJECT, LOCATION, GROUP = "PERSON", "OBJECT", "LOCATION", "GROUP"
ENTITY_KINDS = frozenset({PERSON, OBJECT, LOCATION, GROUP})
"""Kinds of vertices that are named as said or seen."""
EVENT_VERTEX, TEXT_VERTEX, MACRO_VERTEX, SUPER_VERTEX = "EVENT", "TEXT", "MACRO", "SUPER"
"""Kinds of vertices that stand for a node: they are named by its number."""
VERTEX_KINDS = {EVENT: EVENT_VERTEX, TEXT: TEXT_VERTEX, MACRO: MACRO_VERTEX, SUPER: SUPER_VERTEX}
"""The kind of vertex of each level of nodes that has one."""

PERFORMS, RECEIVES, USES_TOOL, CONTEXT_FOR = "PERFORMS", "RECEIVES", "USES_TOOL", "CONTEXT_FOR"
HAPPENS_IN = "HAPPENS_IN"
BEFORE, OVERLAP, CAUSES, PREVENTS = "BEFORE", "OVERLAP", "CAUSES", "PREVENTS"
SUBEVENT_OF = "SUBEVENT_OF"
PART_OF, LOCATED_IN, NEXT_TO, ATTACHED_TO = "PART_OF", "LOCATED_IN", "NEXT_TO", "ATTACHED_TO"
ANNOTATES, IS_SAME_AS, MENTIONED = "ANNOTATES", "IS_SAME_AS", "MENTIONED"
ENABLES, LEADS_TO = "ENABLES", "LEADS_TO"
RESOLVES, CONTRASTS_WITH = "RESOLVES", "CONTRASTS_WITH"


class Ends(NamedTuple):
    """The kinds of vertices that an edge may lead from and to."""

    subjects: frozenset[str]
    objects: frozenset[str]


_EVENTS = frozenset({EVENT_VERTEX})
_TEXTS = frozenset({TEXT_VERTEX})
_THINGS = ENTITY_KINDS | _TEXTS
_MACROS, _SUPERS = frozenset({MACRO_VERTEX}), frozenset({SUPER_VERTEX})

GRAPH_ENDS: Mapping[str, Ends] = {
    **dict.fromkeys((PERFORMS, RECEIVES, USES_TOOL), Ends(ENTITY_KINDS, _EVENTS)),
    CONTEXT_FOR: Ends(_THINGS, _EVENTS),
    HAPPENS_IN: Ends(_EVENTS, ENTITY_KINDS),
    **dict.fromkeys((BEFORE, OVERLAP, CAUSES, PREVENTS, SUBEVENT_OF), Ends(_EVENTS, _EVENTS)),
    PART_OF: Ends(ENTITY_KINDS, ENTITY_KINDS),
    **dict.fromkeys((LOCATED_IN, NEXT_TO, ATTACHED_TO), Ends(_THINGS, ENTITY_KINDS)),
    ANNOTATES: Ends(_THINGS, ENTITY_KINDS),
    IS_SAME_AS: Ends(ENTITY_KINDS, ENTITY_KINDS),
    MENTIONED: Ends(ENTITY_KINDS, ENTITY_KINDS),
}
"""The labels of edges inside a macro event; ``MENTIONED`` joins an entity without any to itself."""
MACRO_ENDS: Mapping[str, Ends] = dict.fromkeys((CAUSES, PREVENTS, ENABLES), Ends(_MACROS, _MACROS))
"""The labels of edges between the macro events of a super event."""
SUPER_ENDS: Mapping[str, Ends] = dict.fromkeys(
    (BEFORE, LEADS_TO, RESOLVES, CONTRASTS_WITH), Ends(_SUPERS, _SUPERS)
)
"""The labels of edges between super events; those between neighbours are ``BEFORE``, by code."""
ENDS: Mapping[str, Mapping[str, Ends]] = {GRAPH: GRAPH_ENDS, MACRO: MACRO_ENDS, SUPER: SUPER_ENDS}
"""The labels of the relations of each level."""


def is_allowed(level: str, subject: str, label: str, target: str) -> bool:
    """Check whether an edge of a level may have this label between vertices of these kinds."""
    ends = ENDS[level].get(label)
    return ends is not None and subject in ends.subjects and target in ends.objects
