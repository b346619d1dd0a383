"""What an embeddings endpoint will take for texts, before they are sent to it.

How many tokens a character of text has is known from the requests on record, else from a few
sentences that the endpoint is asked to embed: nothing of a video is sent for an estimate.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from flows.workspace import Workspace
from models.profile import Profile
from models.specs import cost_usd, is_priced
from models.text_endpoint import EndpointTextEmbedder
from store.queries.calls import tokens_a_character as recorded_tokens_a_character

SAMPLE = (
    "Good morning, and thank you all for coming to this talk about how cities are planned.",
    "So the first question is how much of that we can measure at all.",
    "A woman in a red coat opens the door and carries a lamp into the hall.",
    "On screen: Quarterly results, revenue by region, 2019 to 2023",
    "Seen: 3 people, a laptop, a cup.",
    "Heard: music, continued.",
    "I don't know. We should ask her again before Tuesday.",
    "The lines represent linear equations, and where they meet is the solution.",
    "He is the brother of the man who sold the house.",
    "Picture: dark, mostly brown.",
    "If you look at the upper left corner, you can see that the pressure rises slowly.",
    "Right, yes, exactly.",
)
"""Texts like those of a memory, whose tokens are counted, and whose embedding is timed."""


CHARACTERS_A_TOKEN = 4
"""Where nobody has counted."""


def tokens_a_character(workspace: Workspace) -> float:
    """Return how many tokens a character of text has for the profile's embeddings endpoint.

    Raises:
        ModelError: There is no record of it yet, and it does not answer.
        SetupError: A package or key is missing, or the key is refused.
    """
    with workspace.store.begin() as session:
        known = recorded_tokens_a_character(session, workspace.profile.text_name)
    text = workspace.toolbox.text
    if known is not None or not isinstance(text, EndpointTextEmbedder):
        return known or 0.0
    return text.count_tokens(SAMPLE) / sent_characters(workspace.profile, SAMPLE)


def sent_characters(profile: Profile, texts: Iterable[str]) -> int:
    """Return the characters of texts as an endpoint is sent them, each with its prefix."""
    prefix = len(profile.encoder.passage_prefix or "")
    return sum(prefix + len(text) for text in texts)


def embedding_cost(profile: Profile, tokens: float) -> float | None:
    """Return US dollars for embedding so many tokens; None where no price is known."""
    if not profile.uses_endpoint:
        return 0.0
    spec = profile.text_endpoint
    return cost_usd(spec, round(tokens), 0) if is_priced(spec) else None


def embedding_seconds(workspace: Workspace, characters: int) -> float:
    """Return about how long embedding so many characters takes, by embedding a few sentences."""
    workspace.toolbox.text.embed(SAMPLE[:1])  # Loads the model.
    start = time.monotonic()
    workspace.toolbox.text.embed(SAMPLE)
    return (time.monotonic() - start) * characters / sum(map(len, SAMPLE))


def picture_seconds(workspace: Workspace, pictures: int) -> float:
    """Return about how long encoding so many pictures takes, by encoding one; 0 without a model."""
    encoder = workspace.toolbox.images
    if encoder is None:
        return 0.0
    image = np.zeros((720, 1280, 3), np.uint8)
    encoder.images([image])  # The first one is slower.
    start = time.monotonic()
    encoder.images([image])
    return (time.monotonic() - start) * pictures
