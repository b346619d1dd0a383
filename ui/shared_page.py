"""The pages of shared links, which need no sign-in: plain HTML, one answer or moment each."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from string import Template

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from domain.errors import HomerError, NotFound
from domain.marked import marked
from domain.moments import Moment
from domain.people import tags_in_words
from domain.rights import SharedLink, acting_user
from domain.words import format_span, format_time, reader, translate
from library.answers import answer_line, confidence_line, note_line
from library.shared import CitedMoment, SharedAnswer, SharedMoment, load_shared
from library.sharing import open_link
from store.database import Store
from telemetry.logs import log_error
from ui.formatting import format_date
from ui.language import best_language, readers
from ui.media import shared_store, stored_image

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
    """Return the route ``/shared/LINK``."""
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
        title, body = shown.question.text, _answer(store, shown)
    else:
        title, body = f"{shown.title}, {format_span(shown.span)}", _moment(store, shown)
    foot = translate(
        "Shared from Homer, which watches videos and can err. This link is valid until {date}."
    )
    return Template(TEMPLATE.read_text("utf-8")).substitute(
        language=reader.get().code,
        title=escape(title),
        body=body,
        foot=escape(foot.format(date=format_date(link.expires_at))),
    )


def _answer(store: Store, shown: SharedAnswer) -> str:
    answer = shown.answer
    text = escape(answer_line(answer, shown.question))
    remarks = "; ".join(part for part in (confidence_line(answer), note_line(answer)) if part)
    cited = "".join(_cited(store, one) for one in shown.citations)
    return f'<p dir="auto"><strong>{text}</strong></p><p class="small">{escape(remarks)}</p>{cited}'


def _cited(store: Store, one: CitedMoment) -> str:
    head = escape(f"{format_span(one.citation.span)} {one.title}")
    return _box(store, one.frame, head, one.citation.full_text)


def _moment(store: Store, shown: SharedMoment) -> str:
    return _box(store, shown.frame, "", *shown.lines)


def _box(store: Store, frame: Moment | None, head: str, *lines: str) -> str:
    title = f'<strong dir="auto">{head}</strong>' if head else ""
    texts = "".join(f'<p dir="auto">{escape(tags_in_words(line))}</p>' for line in lines)
    return f'<div class="moment">{_image(store, frame)}{title}{texts}</div>'


def _image(store: Store, frame: Moment | None) -> str:
    data = stored_image(store, frame.blob) if frame else b""
    if not data or frame is None:
        return ""
    alt = translate("Frame of the video at {time}").format(time=format_time(frame.span.start_ms))
    encoded = base64.b64encode(data).decode()
    return f'<img alt="{escape(alt)}" src="data:image/jpeg;base64,{encoded}">'
