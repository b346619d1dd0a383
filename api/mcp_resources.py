"""The resources of the MCP server: videos and questions, by the paths that the API has them at."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, unquote, urlsplit

from mcp_types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from pydantic import BaseModel

from api.app_state import ApiState
from api.mcp_tools import for_client
from domain.errors import InputError, NotFound
from domain.words import client_text
from library.memory import clips, events
from library.outlines import outline
from library.params import MAX_LIMIT, page
from library.people import people_of_video
from library.trajectories import trajectories, trajectory, trajectory_events
from library.videos import page_of_videos, video

SCHEME = "homer"
JSON_TYPE = "application/json"
Read = Callable[[ApiState, str, int], BaseModel]

READERS: Mapping[tuple[str, str], Read] = {
    ("videos", ""): lambda state, name, _: video(state.store, name),
    ("videos", "clips"): lambda state, name, offset: clips(state.store, name, offset),
    ("videos", "people"): lambda state, name, offset: people_of_video(
        state.store, name, offset=offset
    ),
    ("videos", "events"): lambda state, name, offset: events(state.store, name, offset),
    ("videos", "outline"): lambda state, name, _: outline(state.store, name),
    ("questions", ""): lambda state, name, _: trajectory(state.store, name),
    ("questions", "events"): lambda state, name, offset: trajectory_events(
        state.store, name, offset
    ),
}
"""What reads a resource, by the first and the last part of its path."""

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


def list_templates() -> ListResourceTemplatesResult:
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
    """Return a page of the library's videos by title, or after them of its questions.

    Raises:
        InputError: the cursor is none of this server's.
    """
    offset = _parsed(cursor or "0", "the cursor")
    listed, total = page_of_videos(state.store, offset, MAX_LIMIT)
    shown = [
        Resource(
            uri=f"{SCHEME}://videos/{one.id}",
            name=client_text(one.title),
            description="a video",
            mime_type=JSON_TYPE,
        )
        for one in listed
    ]
    left = MAX_LIMIT - len(shown)
    asked = trajectories(state.store, offset=max(0, offset - total), limit=left)
    shown += [
        Resource(
            uri=f"{SCHEME}://questions/{one.id}",
            name=client_text(one.question),
            description="a question that was asked",
            mime_type=JSON_TYPE,
        )
        for one in asked.items
    ]
    following = page(shown, total + asked.total, offset).next
    return ListResourcesResult(
        resources=shown, next_cursor=None if following is None else str(following)
    )


def read_resource(state: ApiState, uri: str) -> TextResourceContents:
    """Return a resource as JSON: the answer that the API has at its path.

    Raises:
        NotFound: there is no such resource.
        InputError: the offset is not a number.
    """
    try:
        parts = urlsplit(uri)
        offset = parse_qs(parts.query, max_num_fields=1).get("offset", ["0"])[0]
    except ValueError as error:  # homer://[
        raise _no_resource(uri) from error
    name, _, part = parts.path.removeprefix("/").partition("/")
    reader = READERS.get((parts.netloc, part))
    if parts.scheme != SCHEME or reader is None or not name:
        raise _no_resource(uri)
    text = json.dumps(
        for_client(reader(state, unquote(name), _parsed(offset, "offset"))), ensure_ascii=False
    )
    return TextResourceContents(uri=uri, mime_type=JSON_TYPE, text=text)


def _no_resource(uri: str) -> NotFound:
    return NotFound(f"there is no resource {uri[:200]!r}: list the resources and their templates")


def _parsed(number: str, what: str) -> int:
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        raise InputError(f"{what} is not a number of entries: {number[:20]!r}")
    return int(number)
