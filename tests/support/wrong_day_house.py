"""Houses in which the moment that fits the words best is of another day than the one asked about.

Only a look into the event that the question is about finds where things went in the storm.
"""

from __future__ import annotations

from domain.asking import Question
from store.database import Store
from tests.support.remembered import Event, Said, add_event_graph, watch

OPTIONS = ("to the attic", "to the cellar")
OTHER_DAY, STORM = "A", "B"
"""The options that a look at everything and a look into the event speak for."""


def house(store: Store, video: str, thing: str = "lantern") -> Question:
    """A house in memory, and what is asked about it."""
    clips = [
        [Said(f"we look for her {thing}", 3)],
        [Said(f"she takes the {thing} down to the cellar", 3)],
        [Said(f"Ann carries the {thing} to the attic", 3)],
        [Said("Ann sleeps in the attic", 3)],
    ]
    output = f"In the storm Ann carries the {thing}; the storm is loud."
    events = [
        Event(0, "Ann in the storm", output, (0, 1), 1),
        Event(1, "the day after", "Everybody is tired.", (2, 3), 3),
    ]
    watch(store, video, clips)
    add_event_graph(store, video, events)
    text = f"Where does Ann carry the {thing} in the storm?"
    return Question(text=text, videos=(video,), options=OPTIONS, type="where")
