"""VAM's tools, ready to be used; imports OpenCV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strategies.document_index import DocumentIndexes
from strategies.kept_frames import FrameReader
from strategies.vam.inspect_tool import Inspect
from strategies.vam.inspection import Inspection
from strategies.vam.policy import FRAMES, INSPECT, SEARCH, SUMMARIZE
from strategies.vam.search import FrameSearch, Search
from strategies.vam.summaries import Summarize
from strategies.vam.wall_clock import StreamClocks

if TYPE_CHECKING:
    from agent.strategy import RunTool
    from models.toolbox import Toolbox
    from store.database import Store


def opened_tools(store: Store, toolbox: Toolbox, name: str) -> dict[str, RunTool]:
    """Open the tools of a strategy, which share the documents and frames that it keeps."""
    indexes = DocumentIndexes(store, toolbox.text, name)
    frames = FrameReader(store, toolbox, name)
    inspection = Inspection(store, frames)
    clocks = StreamClocks(store)
    search = Search(indexes, frames, inspection, clocks, toolbox.images)
    return {
        SEARCH: search,
        FRAMES: FrameSearch(search),
        INSPECT: Inspect(indexes, frames, inspection, clocks),
        SUMMARIZE: Summarize(store, indexes, clocks, name),
    }
