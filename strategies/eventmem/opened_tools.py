"""EventMemAgent's tools, ready to be used; imports OpenCV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strategies.document_index import DocumentIndexes
from strategies.eventmem.policy import DETECT, OCR, SEARCH, SHORT
from strategies.eventmem.recall import Recall
from strategies.eventmem.tools import DetectObjects, Ocr, SearchMemory, ShortTermTool
from strategies.kept_frames import FrameReader

if TYPE_CHECKING:
    from agent.strategy import RunTool
    from models.toolbox import Toolbox
    from store.database import Store
    from strategies.eventmem.settings import EventMemorySettings


def opened_tools(
    store: Store, toolbox: Toolbox, name: str, settings: EventMemorySettings
) -> dict[str, RunTool]:
    """Open the tools of a strategy, which share both memories."""
    indexes = DocumentIndexes(store, toolbox.text, name)
    frames = FrameReader(store, toolbox, name)
    recall = Recall(store, frames, settings, name)
    return {
        SHORT: ShortTermTool(indexes, frames, recall),
        SEARCH: SearchMemory(indexes, settings),
        OCR: Ocr(indexes, frames, recall),
        DETECT: DetectObjects(indexes, frames, recall, toolbox),
    }
