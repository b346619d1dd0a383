"""The library page: what was watched, and what is known of it."""

from __future__ import annotations

import streamlit as st

from domain.errors import HomerError
from domain.time import clock
from memory.library import LibraryEntry, Portrait, list_library, show_video
from ui.desk import page_desk
from ui.player import player
from ui.words import plain


def library_page() -> None:
    """The list of videos, and the portrait of the one chosen."""
    st.title("Library")
    try:
        store = page_desk().store
        entries = list_library(store)
        if not entries:
            st.info("Nothing has been watched yet. In a terminal: `homer ingest FILE`")
            return
        st.dataframe([_row(entry) for entry in entries], hide_index=True)
        names = {entry.id: entry.title for entry in entries}
        chosen = st.selectbox("Show", list(names), format_func=lambda name: names[name])
        _portrait(show_video(store, chosen))
    except HomerError as error:
        st.error(plain(str(error)))


def _row(entry: LibraryEntry) -> dict[str, str]:
    return {
        "title": entry.title,
        "length": clock(entry.duration_ms),
        "clips": f"{entry.done}/{entry.clips}",
        "state": entry.state,
        "profile": entry.profile,
        "id": entry.id,
    }


def _portrait(portrait: Portrait) -> None:
    video = portrait.video
    if portrait.error:
        st.warning(plain(portrait.error))
    left, right = st.columns([2, 3])
    with left:
        player(video)
    with right:
        people, segments, clips = st.tabs(["People", "Events", "Clips"])
    with people:
        _people(portrait)
    with segments:
        _segments(portrait)
    with clips:
        _clips(portrait)


def _people(portrait: Portrait) -> None:
    if not portrait.people:
        st.caption("Nobody was recognised.")
    for person in portrait.people:
        names = ", ".join(f"{name.name} ({name.source})" for name in person.names)
        st.write(f"**{plain(person.label)}** {plain(' '.join(person.tags))} {plain(names)}")


def _segments(portrait: Portrait) -> None:
    labels = {segment.id: segment.label for segment in portrait.segments}
    if not labels:
        st.caption("No events yet.")
    for segment in portrait.segments:
        with st.expander(f"{segment.span} {plain(segment.label)}"):
            st.write(plain(segment.summary))
            for edge in portrait.edges:
                if edge.source == segment.id:
                    target = plain(labels.get(edge.target, "?"))
                    st.write(f"{edge.relation} **{target}**: {plain(edge.rationale)}")


def _clips(portrait: Portrait) -> None:
    for clip in portrait.clips:
        with st.expander(f"{clip.span} {clip.state}"):
            if clip.error:
                st.warning(plain(clip.error))
            for line in clip.lines:
                st.write(f"{line.span} *{line.source}* {plain(line.text)}")
