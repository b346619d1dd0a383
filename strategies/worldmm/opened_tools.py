"""WorldMM's tools, ready to be used; imports scipy, which takes half a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strategies.kept_frames import FrameReader
from strategies.worldmm.index import WorldIndexes
from strategies.worldmm.search import EpisodicSearch, SemanticSearch
from strategies.worldmm.visual import VisualSearch

if TYPE_CHECKING:
    from agent.strategy import RunTool
    from models.toolbox import Toolbox
    from store.database import Store
    from strategies.worldmm.settings import WorldMemorySettings


def opened_tools(
    store: Store, toolbox: Toolbox, name: str, settings: WorldMemorySettings
) -> dict[str, RunTool]:
    """Open the searches of a strategy: captions and what lasts share an index."""
    indexes = WorldIndexes(store, name, settings)
    frames, most = FrameReader(store, toolbox, name), toolbox.profile.settings.ask.images
    return {
        "episodic": EpisodicSearch(store, toolbox.text, indexes, settings),
        "semantic": SemanticSearch(store, toolbox.text, indexes, settings),
        "visual": VisualSearch(frames, toolbox.text, lambda: toolbox.images, settings, most),
    }
