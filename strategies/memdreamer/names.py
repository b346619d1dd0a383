"""The names of MemDreamer's seven tools."""

from __future__ import annotations

GET_SUMMARY, GET_SUPER_EVENTS = "get_summary", "get_super_events"
GET_MACRO_EVENTS, GET_SUBGRAPH = "get_macro_events", "get_subgraph"
SEARCH_NODES, SEARCH_BY_TIME, GET_RELATIONS = "search_nodes", "search_by_time", "get_relations"
