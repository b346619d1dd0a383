"""A small remembered garden party, and a toolbox without weights, to ask questions of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.ports import TextLine, Thing
from models.profile import Profile, load_profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from retrieval.heuristics.questions import Asks
from store.database import Store
from store.queries.backup import video_records
from store.queries.trajectories import StoredTrajectory, list_trajectories
from tests.support.remembered import PARSER, Event, Said, WordEmbedder, add_event_graph, name, watch
from tests.support.scripted_chat import scripted

PARTY = "abcdefabcdefabcd"

CLIPS = (
    (Said("Ann opens the wooden gate of the garden", 3), Said("The sky is clear", 12)),
    (Said("Bob carries a blue cup of coffee to the table", 4, who=("<face_2>",)),),
    (
        Said("We moved the party inside because the rain started", 5, speaker="<voice_1>"),
        Said("Everybody leaves the garden", 14),
    ),
    (Said("Ann shows the old piano in the kitchen", 2, who=("<face_1>",)),),
    (Said("Bob plays a slow song on the piano", 6, who=("<face_2>",)),),
    (Said("The guests wash the plates and sing", 8), Said("Good night", 25, source="read")),
)
EVENTS = (
    Event(0, "arrival in the garden", "Ann opens the gate and Bob brings coffee.", (0, 1), 2),
    Event(1, "rain and retreat", "Rain starts and the party moves inside.", (2,), 2),
    Event(2, "music in the kitchen", "Ann shows a piano and Bob plays a slow song.", (3, 4, 5), 5),
)
EDGES = ((0, 1, "before", 2), (1, 2, "causes", 5))


class StructureByWords:
    """Tells questions about structure by a word of theirs, since words for vectors cannot."""

    KINDS = (
        ("last seen", Asks.LAST_SEEN),
        ("speak", Asks.SPEAKERS),
        ("begin", Asks.BEGINNING),
        ("said last", Asks.END),
        ("end?", Asks.END),
        ("about?", Asks.ABOUT),
        ("outline", Asks.OUTLINE),
        ("who is in", Asks.PEOPLE),
        ("how many people", Asks.PEOPLE),
    )

    def __init__(self, *_: object) -> None:
        pass

    def of(self, question: str) -> Asks | None:
        return next((kind for word, kind in self.KINDS if word in question.lower()), None)


class WordToolbox(Toolbox):
    """A toolbox whose text embedding needs no weights and knows words only."""

    def __init__(self, profile: str = "local") -> None:
        super().__init__(load_profile(profile, None), Path("/nonexistent"))

    @property
    def text(self) -> WordEmbedder:
        return WordEmbedder()

    sentences = PARSER

    @property
    def reranker(self) -> None:
        return None


class ReadingToolbox(WordToolbox):
    """A toolbox whose OCR and detector read each frame alike."""

    class _Screen:
        name = "screen"

        def read(self, image: Any) -> list[TextLine]:
            return [TextLine((0, 0, 1, 1), "EXIT 12", 0.9)]

    class _Objects:
        name, min_score, labels = "objects", 0.3, ("cup", "dog")

        def objects(self, image: Any) -> list[Thing]:
            return [Thing((0, 0, 1, 1), "cup", 0.9), Thing((2, 2, 3, 3), "dog", 0.8)]

    @property
    def screen(self) -> Any:
        return self._Screen()

    @property
    def objects(self) -> Any:
        return self._Objects()


class Reads(WordToolbox):
    """A toolbox with a reader that always says the same."""

    def __init__(self, reply: Any) -> None:
        self.model = scripted(lambda _: reply)
        profile = Profile(name="reads", chat={"reader": ChatSpec(model="openai:test", retries=0)})
        Toolbox.__init__(self, profile, Path("/nonexistent"), chat_factory=self.model)


def remember_party(store: Store, clips: int = len(CLIPS)) -> None:
    watch(store, PARTY, CLIPS[:clips])
    known = [event for event in EVENTS if event.since < clips]
    edges = [edge for edge in EDGES if edge[3] < clips]
    if known:
        add_event_graph(store, PARTY, known, edges)
    name(store, PARTY, 1, "Ann", "<face_1>")
    name(store, PARTY, 2, "Bob", "<face_2>", "<voice_1>")


def built_rows(store: Store) -> list[dict[str, Any]]:
    """The records of what strategies built over the party."""
    kinds = ("build", "node_revision", "entity", "relation")
    with store.begin() as session:
        return [record for record in video_records(session, PARTY) if record["row"] in kinds]


def latest(store: Store) -> StoredTrajectory:
    with store.begin() as session:
        return list_trajectories(session)[0]
