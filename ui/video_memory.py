"""What each strategy remembers of the moment of a video that plays."""

from __future__ import annotations

from itertools import groupby

import streamlit as st

from domain.media import Video
from domain.moments import MemoryOfMoment
from domain.people import tags_in_words
from domain.words import format_span, format_time, join_words, marked, translate
from library.moments import load_moment
from library.strategies import askable_titles
from store.database import Store
from ui.app_state import PageState
from ui.formatting import escape_markdown
from ui.media import stored_image
from ui.player import played_ms

MAX_TEXT_CHARS = 600
"""Characters shown of a text."""
SHARED = marked("Shared by all strategies")


def show_memory(state: PageState, video: Video) -> None:
    """Draw what is remembered of the moment that plays, strategy by strategy."""
    at_ms = played_ms(video)
    st.header(
        translate("What is remembered of {time}").format(time=format_time(at_ms)), anchor=False
    )
    st.caption(translate("It follows the player: pause it, or go to another moment."))
    titles = askable_titles()
    for moment in load_moment(state.store, video.id, at_ms):
        _show(state.store, moment, titles.get(moment.strategy, ""))


def _show(store: Store, moment: MemoryOfMoment, title: str) -> None:
    with st.container(border=True, key=f"moment_of_{moment.strategy or 'all'}"):
        st.markdown(f"**{escape_markdown(moment.strategy or translate(SHARED))}**")
        if title:
            st.caption(escape_markdown(translate(title)))
        if moment.writers:
            line = (
                translate("Memory written by {writers}")
                if moment.strategy
                else translate("Event graph written by {writers}")
            )
            writers = join_words([translate(writer) for writer in moment.writers])
            st.caption(escape_markdown(line.format(writers=writers)))
        if not (moment.nodes or moment.relations or moment.frames):
            st.write(translate("Nothing of this moment."))
        key = f"strip_{moment.strategy or 'all'}"
        with st.container(horizontal=True, key=key):
            for frame in moment.frames:
                data, time = stored_image(store, frame.blob), format_time(frame.span.start_ms)
                if data:
                    caption = escape_markdown(f"{time} {frame.source}".strip())
                    st.image(
                        data,
                        caption=caption,
                        alt=translate("Frame of the video at {time}").format(time=time),
                        width=150,
                    )
        for level, nodes in groupby(moment.nodes, key=lambda node: node.kind):
            lines = [f"**{escape_markdown(translate(level))}**"]
            for node in nodes:
                parts = (part for part in (node.label or node.source, node.text) if part)
                text = escape_markdown(_shortened(": ".join(dict.fromkeys(parts))))
                lines.append(f"{format_span(node.span)} {text}")
            st.markdown("  \n".join(lines))
        if not moment.relations:
            return
        count = moment.relations_total
        more = (
            translate(", {count} are shown").format(count=len(moment.relations))
            if count > len(moment.relations)
            else ""
        )
        with st.expander(
            translate("Relations that hold then ({count}{more})").format(count=count, more=more)
        ):
            lines = [
                f"{escape_markdown(_shortened(one.text))} "
                f"({escape_markdown(translate(one.kind))}, {format_span(one.span)})"
                for one in moment.relations
            ]
            st.markdown("  \n".join(lines))
            if moment.entities:
                named = join_words([_shortened(text) for text in moment.entities.values()])
                st.caption(escape_markdown(translate("Between: {named}").format(named=named)))


def _shortened(text: str) -> str:
    shown = " ".join(tags_in_words(text).split())
    return shown if len(shown) <= MAX_TEXT_CHARS else shown[:MAX_TEXT_CHARS].rstrip() + " …"
