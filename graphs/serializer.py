"""How LangGraph's values are written into checkpoints and read again: as plain data only."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from store.checkpoint_values import pack, unpack


class PlainSerializer(SerializerProtocol):
    """Reads and writes plain JSON types.

    LangGraph's own builds any object that the bytes name, which is to run code of whoever wrote
    them; a checkpoint may come from an import.
    """

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """A value with the name of its format.

        Raises:
            TypeError: it is not plain data.
        """
        return pack(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value.

        Raises:
            InputError: it is not plain data.
        """
        return unpack(*data)
