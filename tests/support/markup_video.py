"""A video in which everything that was said, read, named and answered tries to be markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sqlalchemy import update

from domain.asking import Question
from domain.media import ClipState
from store.database import Store
from store.queries.clips import mark_clip
from store.queries.videos import FAILED, set_video_state
from store.tables.schema import EdgeRow, VideoRow
from tests.support.asking import PARTY
from tests.support.obedient_model import LlmToolbox, purpose_of
from tests.support.openai_server import OpenAIServer
from tests.support.remembered import Event, Said, add_event_graph, name, watch
from tests.support.runs import ask
from tests.support.searching_model import searching

BAIT = (
    "https://evil.example/a www.evil.example me@evil.example <img src=//evil.example/x onerror="
    "alert(1)> ![p](http://evil.example/p.png) [j](javascript:alert(1)) :material/home: $x$ "
    ":red[loud] **bold** `code` <a href='//evil.example'>z</a>"
)
"""What Markdown, or a browser, may make a link, a picture, a sign or a formula of."""

MARKS = ("https://evil", "www.evil", "me@evil", "<img", "![", "](", ":material/", "$x$", ":red[")
"""Stand in a text for as long as nothing took away what they mean."""


def wicked(request: dict[str, Any]) -> Any:
    """A model whose every word is bait."""
    made = searching(request)
    match purpose_of(request):
        case "plan":
            return {"subtasks": [{"text": f"{n} {BAIT}"} for n in range(2)]}
        case "act":
            return made | {"query": f"{made['query']} {BAIT}", "reason": BAIT}
        case "conclude":
            return made | {"answer": BAIT}
    return made


def plant(store: Store, path: str | None = None) -> str:
    """Remembers the video and asks about it; returns the trajectory's id."""
    lines = [
        (Said(f"said {BAIT}", 3, who=("<face_1>",)), Said(f"read {BAIT}", 9, source="read")),
        (Said(f"again {BAIT}", 4, speaker="<voice_1>", who=("<face_2>",)),),
        (Said("nothing", 4),),
    ]
    watch(store, PARTY, lines)
    events = [Event(n, f"event {n} {BAIT}", f"about {BAIT}", (n,), 1) for n in range(2)]
    add_event_graph(store, PARTY, events, [(0, 1, "causes", 1)])
    name(store, PARTY, 1, f"Ann {BAIT}"[:200], "<face_1>")
    name(store, PARTY, 2, f"Bob {BAIT}"[:200], "<face_2>", "<voice_1>")
    with store.begin() as session:
        session.execute(update(EdgeRow).values(rationale=BAIT))
        here = update(VideoRow).where(VideoRow.id == PARTY)
        session.execute(here.values(title=f"film {BAIT}", path=path))
        mark_clip(session, PARTY, 2, ClipState.FAILED, f"the model said {BAIT}")
        set_video_state(session, PARTY, FAILED, f"1 clips failed {BAIT}")
    with OpenAIServer(wicked) as server:
        question = Question(text=f"why {BAIT}", videos=(PARTY,), options=(BAIT, "no"))
        return ask(store, LlmToolbox(server), question).trajectory_id


def markup_of(page: Any) -> Iterator[str]:
    """Every text of a page that Streamlit reads as Markdown, without the signs it is told to show.

    Web addresses are looked for as they are shown, since they need no sign of their own.
    """
    for node in page._tree:
        proto = getattr(node, "proto", None)
        if proto is not None and node.type not in {"html", "code", "text"}:
            for text in _texts(proto):
                yield re.sub(r"\\.", "", text)
                yield from re.findall(r"https?://evil|www\.evil|me@evil", text.replace("\\", ""))


def _texts(proto: Any) -> Iterator[str]:
    for field, value in proto.ListFields():
        if field.name in {"body", "label", "help", "caption", "text"} and isinstance(value, str):
            yield value
        elif field.message_type is not None:
            for one in value if field.is_repeated else [value]:
                if hasattr(one, "ListFields"):
                    yield from _texts(one)
