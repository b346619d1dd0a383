"""How many tokens a request takes, before it is made: rather too many than too few."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import BaseModel

from models.messages import Message

BYTES_A_TOKEN = 3.0
"""Fewer than most tokenizers need, so that an estimate is rather too high."""
IMAGE_TOKENS = 1_100
"""As many as the dearest of the usual models takes for one image of 720 lines."""


def text_tokens(text: str) -> int:
    """Tokens of a text in any language."""
    return round(len(text.encode()) / BYTES_A_TOKEN)


def request_tokens(messages: Sequence[Message], schema: type[BaseModel], images: int) -> int:
    """Tokens of a request with so many whole images."""
    form = json.dumps(schema.model_json_schema())
    text = sum(len(message.content.encode()) for message in messages) + len(form)
    return round(text / BYTES_A_TOKEN) + images * IMAGE_TOKENS
