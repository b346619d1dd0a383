"""Making, listing and revoking links to answers and moments."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from domain.errors import HomerError, NotFound
from domain.moments import Moment
from domain.people import tags_in_words
from domain.rights import DEFAULT_DAYS, MAX_MOMENT_MS, SharedLink, acting_user
from domain.time import TimeSpan
from domain.words import counted, format_span, format_time, marked, reader, translate
from library.answers import answer_line, confidence_line, note_line
from library.sharing import (
    SharedAnswer,
    load_shared,
    open_link,
    revoke_link,
    share_answer,
    share_moment,
    shared_links,
)
from library.videos import videos_named
from store.database import Store
from telemetry.logs import log_error
from ui.app_state import show_errors
from ui.formatting import escape_markdown, format_date
from ui.language import best_language, readers
from ui.media import shared_store, stored_image
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
        translate("Valid for"),
        DAYS,
        index=1,
        format_func=lambda days: counted(days, "day"),
        key="share_days",
    )
    if st.button(translate("Make a link"), key="share", icon=":material/link:"):
        with show_errors():
            share_answer(store, trajectory, days)
    _show_links(store, shared_links(store, trajectory))


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
            days=counted(DEFAULT_DAYS, "day")
        ),
        type="tertiary",
        icon=":material/link:",
    ):
        with show_errors():
            link = share_moment(store, video, span, DEFAULT_DAYS)
            st.session_state[made] = _address(link)
    if made in st.session_state:
        st.code(st.session_state[made], language=None, wrap_lines=True)


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
            with show_errors():
                revoke_link(store, link.id)
                st.rerun()


def _address(link: SharedLink) -> str:
    """Return a link under the address at which the browser reaches the app."""
    here = urlsplit(st.context.url or link.url)
    return urlsplit(link.url)._replace(scheme=here.scheme, netloc=here.netloc).geturl()


# The pages of shared links, which need no sign-in: plain HTML, one answer or moment each.

TEMPLATE = Path(__file__).parent / "components" / "shared.page"
HEADERS = {
    "Cache-Control": "no-store",
    # The address opens the page, so it is not passed on.
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
}
GONE = marked("This link is not valid: it has expired, or was revoked.")
DATABASE_DOWN = marked("The library does not answer at the moment. Try again later.")


def shared_routes() -> list[Route]:
    return [Route("/shared/{link}", _shared, methods=["GET"])]


def _shared(request: Request) -> Response:
    """Show what a link shows; whatever is wrong with it, a stranger learns no more than that."""
    reader.set(readers()[best_language(request.headers.get("accept-language", ""))])
    address = request.client.host if request.client else "unknown"
    acting_user.set(f"link {request.path_params['link']} ({address})")
    params, store = request.query_params, shared_store()
    try:
        link = open_link(
            store, request.path_params["link"], params.get("until", ""), params.get("key", "")
        )
        page = render_link(store, link)
    # A wrong signature, an expired link and a revoked one look alike.
    except NotFound:
        return PlainTextResponse(translate(GONE), 404, headers=HEADERS)
    except HomerError as error:
        log_error(error)
        return PlainTextResponse(translate(DATABASE_DOWN), 503, headers=HEADERS)
    return HTMLResponse(page, headers=HEADERS)


def render_link(store: Store, link: SharedLink) -> str:
    """Render the page of a link, with all text from outside escaped.

    Raises:
        NotFound: what it shows was deleted.
    """
    shown = load_shared(store, link)
    if isinstance(shown, SharedAnswer):
        answer, title = shown.answer, shown.question.text
        text = escape(answer_line(answer, shown.question))
        remarks = "; ".join(part for part in (confidence_line(answer), note_line(answer)) if part)
        cited = "".join(
            _box(
                store,
                one.frame,
                escape(f"{format_span(one.citation.span)} {one.title}"),
                one.citation.full_text,
            )
            for one in shown.citations
        )
        body = (
            f'<p dir="auto"><strong>{text}</strong></p>'
            f'<p class="small">{escape(remarks)}</p>{cited}'
        )
    else:
        title, body = (
            f"{shown.title}, {format_span(shown.span)}",
            _box(store, shown.frame, "", *shown.lines),
        )
    foot = translate(
        "Shared from Homer, which watches videos and can err. This link is valid until {date}."
    )
    return Template(TEMPLATE.read_text("utf-8")).substitute(
        language=reader.get().code,
        title=escape(title),
        body=body,
        foot=escape(foot.format(date=format_date(link.expires_at))),
    )


def _box(store: Store, frame: Moment | None, head: str, *lines: str) -> str:
    title = f'<strong dir="auto">{head}</strong>' if head else ""
    texts = "".join(f'<p dir="auto">{escape(tags_in_words(line))}</p>' for line in lines)
    data, image = stored_image(store, frame.blob) if frame else b"", ""
    if data and frame is not None:
        time = format_time(frame.span.start_ms)
        alt = translate("Frame of the video at {time}").format(time=time)
        encoded = base64.b64encode(data).decode()
        image = f'<img alt="{escape(alt)}" src="data:image/jpeg;base64,{encoded}">'
    return f'<div class="moment">{image}{title}{texts}</div>'
