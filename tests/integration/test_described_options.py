"""A question about a short captioned video is answered by what is done in it, through the store."""

from __future__ import annotations

import json
from pathlib import Path

from memory.captions import read_tracks
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.clips import memory_view
from tests.support.event_graphs import import_with_events
from tests.support.memory import SETTINGS, Tools, local_writers
from tests.support.ranking import shares
from tests.support.remembered import Tools as SearchTools

ASKED = "what does the lady do after taking the microphone?"
SCENE = "The lady holds a pan"


def lines(video: str, scene: str) -> list[dict[str, object]]:
    odd = {35: "A red table and a microphone of the lady", 36: "A red table"}
    return [
        {"video": video, "start": at, "end": at + 1, "text": odd.get(at, scene)}
        for at in range(0, 80, 4)
    ] + [{"video": video, "start": at, "end": at + 1, "text": text} for at, text in odd.items()]


def test_the_option_in_most_captions_is_chosen(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text(
        "\n".join(map(json.dumps, [*lines("told", SCENE), *lines("own", f"I. {SCENE}")]))
    )
    search = Retrievers(store, SearchTools(), SETTINGS)
    described = {}
    for track in read_tracks(path):
        video = import_with_events(
            store, track, local_writers(), Tools(), SETTINGS, title=track.title
        )
        with store.begin() as session:
            view = memory_view(session, [video.id])
        options = ("red table", "hold a pan")
        context = search._preparation.context(view, ASKED, options)
        described[track.title] = context.vectors.actions is not None
        if track.title == "told":
            assert context.relevance is not None
            assert options[int(shares(context.relevance).argmax())] == "hold a pan"
    assert described == {"told": True, "own": False}
