"""Making, listing and revoking links to answers and moments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlsplit

import streamlit as st

from domain.rights import DEFAULT_DAYS, MAX_MOMENT_MS, SharedLink
from domain.time import TimeSpan
from domain.words import counted, format_span, translate
from library.sharing import revoke_link, share_answer, share_moment, shared_links
from library.videos import videos_named
from store.database import Store
from ui.errors import show_errors
from ui.formatting import escape_markdown, format_date
from ui.navigation import page_link

DAYS = (1, DEFAULT_DAYS, 30, 365)


def show_sharing(store: Store, trajectory: str) -> None:
    """Draw how an answer is shared, and the links to it."""
    st.write(
        translate(
            "A link shows the question, the answer and the moments that it cites, to "
            "whoever has the link and can reach this app, without signing in. It ends by "
            "itself, or when you revoke it."
        )
    )
    days = st.selectbox(
        translate("Valid for"), DAYS, index=1, format_func=_in_days, key="share_days"
    )
    if st.button(translate("Make a link"), key="share", icon=":material/link:"):
        show_errors(partial(_make, store, trajectory, days))
    _show_links(store, shared_links(store, trajectory))


def _make(store: Store, trajectory: str, days: int) -> None:
    share_answer(store, trajectory, days)


def _in_days(days: int) -> str:
    return counted(days, "day")


def share_button(store: Store, video: str, span: TimeSpan, key: str) -> None:
    """Draw a button that makes a link to a moment, and the link once it is made.

    Nothing is drawn of longer spans, such as chapters, nor for a viewer.
    """
    if span.length_ms > MAX_MOMENT_MS or not store.may_change:
        return
    made = f"shared_{key}"
    if st.button(
        translate("Share"),
        key=f"share_{key}",
        help=translate("Make a link to this moment that needs no sign-in, for {days}").format(
            days=_in_days(DEFAULT_DAYS)
        ),
        type="tertiary",
        icon=":material/link:",
    ):
        show_errors(partial(_share_moment, store, video, span, made))
    if made in st.session_state:
        st.code(st.session_state[made], language=None, wrap_lines=True)


def _share_moment(store: Store, video: str, span: TimeSpan, made: str) -> None:
    link = share_moment(store, video, span, DEFAULT_DAYS)
    st.session_state[made] = _address(link)


def show_shared_links(store: Store) -> None:
    """Draw all links that are valid, if there are any, each with a button that revokes it."""
    links = shared_links(store)
    if links:
        with st.expander(
            translate("Shared links ({count})").format(count=len(links)), icon=":material/link:"
        ):
            _show_links(store, links)


def _show_links(store: Store, links: Sequence[SharedLink]) -> None:
    titles = videos_named(store, [link.video for link in links if link.video])
    for link in links:
        text, button = st.columns([5, 1], vertical_alignment="bottom")
        with text:
            if link.video is None or link.span is None:
                page_link("trajectory", translate("An answer"), trajectory=link.trajectory)
            else:
                title = (
                    escape_markdown(titles[link.video].title)
                    if link.video in titles
                    else translate("A video")
                )
                page_link("video", f"{title}, {format_span(link.span)}", video=link.video)
            st.caption(translate("Valid until {date}").format(date=format_date(link.expires_at)))
            st.code(_address(link), language=None, wrap_lines=True)
        if button.button(translate("Revoke"), key=f"revoke_{link.id}"):
            show_errors(partial(_revoke, store, link.id))


def _revoke(store: Store, link: str) -> None:
    revoke_link(store, link)
    st.rerun()


def _address(link: SharedLink) -> str:
    """Return a link under the address at which the browser reaches the app."""
    here = urlsplit(st.context.url or link.url)
    return urlsplit(link.url)._replace(scheme=here.scheme, netloc=here.netloc).geturl()
