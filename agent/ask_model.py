"""The port to the profile's language model for tools, policies and builders of strategies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel
from typing_extensions import TypedDict, Unpack

from models.messages import Message

Reply = TypeVar("Reply", bound=BaseModel)


class AskOptions(TypedDict, total=False):
    """What a call may say besides what it asks.

    ``temperature`` of the sampling, 0 by default; ``images`` are JPEG files, ``labels`` a text
    before each of them, or none.
    """

    temperature: float
    images: Sequence[bytes]
    labels: Sequence[str]


class AskModel(Protocol):
    """Asks the profile's language model; each call is recorded with its cost."""

    @property
    def sees(self) -> bool:
        """Check whether the model accepts images."""

    def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        schema: type[Reply],
        **options: Unpack[AskOptions],
    ) -> Reply:
        """Ask for a reply in ``schema``.

        Args:
            purpose: what the call is for, a word or two, for the record.
            messages: the turns; the images go with the last user turn.
            schema: a pydantic model.
            options: the temperature, and images with their labels.

        Raises:
            Unreadable: the reply does not fit the schema.
            BudgetExceeded: the tokens or the seconds of a question are spent.
            ModelError: the model cannot be reached.
        """
