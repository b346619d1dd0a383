"""The resources of the MCP server: videos and questions, by the paths that the API has them at."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, unquote, urlsplit

from mcp_types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from api.app_state import ApiState
from api.mcp_tools import for_client
from domain.errors import InputError, NotFound
from domain.words import client_text
from library.params import MAX_LIMIT, page
from library.registry import ACTS
from library.trajectories import trajectories
from library.videos import page_of_videos

SCHEME = "homer"
JSON_TYPE = "application/json"

TEMPLATES = (
    ("videos/{name}", "a video", "The size of its memory."),
    ("videos/{name}/clips{?offset}", "clips", "What was said, read and seen, clip by clip."),
    ("videos/{name}/people{?offset}", "people", "The people of a video."),
    ("videos/{name}/events{?offset}", "events", "The events of a video, and how they are linked."),
    ("videos/{name}/outline", "outline", "The chapters of a video, if they were built."),
    ("questions/{name}", "a question", "The rounds that led to an answer, and the answer."),
    ("questions/{name}/events{?offset}", "events of a question", "Every step of the search."),
)
"""The path, the name and the description of each kind of resource."""

_ACTS_AT = {re.sub(r"{\w+}", "{name}", act.route): act for act in ACTS}
READERS = {
    path: _ACTS_AT[f"GET /{path}"] for path in (one[0].partition("{?")[0] for one in TEMPLATES)
}
"""The act that reads each kind of resource, which has the same path over HTTP."""


async def list_templates(_: object, __: object) -> ListResourceTemplatesResult:
    """Return the kinds of resources."""
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                uri_template=f"{SCHEME}://{path}",
                name=name,
                description=description,
                mime_type=JSON_TYPE,
            )
            for path, name, description in TEMPLATES
        ]
    )


def list_resources(state: ApiState, cursor: str | None) -> ListResourcesResult:
    """Return a page of the library's videos by title, or after them of its questions."""
    offset = _parsed(cursor or "0", "the cursor")
    listed, total = page_of_videos(state.store, offset, MAX_LIMIT)
    left = MAX_LIMIT - len(listed)
    asked = trajectories(state.store, offset=max(0, offset - total), limit=left)
    shown = [(f"videos/{one.id}", one.title, "a video") for one in listed]
    shown += [
        (f"questions/{one.id}", one.question, "a question that was asked") for one in asked.items
    ]
    following = page(shown, total + asked.total, offset).next
    return ListResourcesResult(
        resources=[
            Resource(
                uri=f"{SCHEME}://{path}",
                name=client_text(name),
                description=description,
                mime_type=JSON_TYPE,
            )
            for path, name, description in shown
        ],
        next_cursor=None if following is None else str(following),
    )


def read_resource(state: ApiState, uri: str) -> TextResourceContents:
    """Return a resource as JSON: the answer that the API has at its path."""
    try:
        parts = urlsplit(uri)
        offset = parse_qs(parts.query, max_num_fields=1).get("offset", ["0"])[0]
    except ValueError as error:  # homer://[
        raise _no_resource(uri) from error
    name, _, part = parts.path.removeprefix("/").partition("/")
    act = READERS.get(f"{parts.netloc}/{{name}}" + (f"/{part}" if part else ""))
    if parts.scheme != SCHEME or act is None or not name:
        raise _no_resource(uri)
    given = {next(iter(act.remote)): unquote(name), "offset": _parsed(offset, "offset")}
    given = {key: value for key, value in given.items() if key in act.remote}
    text = json.dumps(for_client(act.call(state.store, given, remote=True)), ensure_ascii=False)
    return TextResourceContents(uri=uri, mime_type=JSON_TYPE, text=text)


def _no_resource(uri: str) -> NotFound:
    return NotFound(f"there is no resource {uri[:200]!r}: list the resources and their templates")


def _parsed(number: str, what: str) -> int:
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        raise InputError(f"{what} is not a number of entries: {number[:20]!r}")
    return int(number)
