"""Which files may be added: those that lie under a folder that the operator named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from api.problems import RequestRefused
from domain.errors import InputError, NotFound

_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
URLS = (
    "addresses are not fetched: whoever asks would choose what the server connects to. Put the "
    "file into a folder of the server, or have its operator run `homer watch` on a stream"
)


class OutsideFolder(RequestRefused):
    """The same for what is there and what is not: nobody learns what lies elsewhere."""

    def __init__(self, folders: Sequence[Path]) -> None:
        told = "have the operator begin the server with `homer serve --videos FOLDER`"
        named = "give the path from a folder that the operator allowed" if folders else told
        detail = "that is not under a folder from which videos may be added"
        super().__init__(HTTPStatus.FORBIDDEN, "outside", detail, named)


def refuse_address(text: str) -> None:
    """Passes what is no address.

    Raises:
        InputError: it is one, with why it is refused.
    """
    if _ADDRESS.match(text):
        raise InputError(URLS)


def allowed_file(folders: Sequence[Path], given: str) -> Path:
    """The file of that path, which may be relative to one of the folders; links are followed.

    Raises:
        Outside: it does not lie under any of them.
        NotFound: there is no file there.
    """
    inside = [found for folder in folders for found in _within(folder, given)]
    if not inside:
        raise OutsideFolder(folders)
    with suppress(OSError):  # A name that no file can have.
        for path in inside:
            if path.is_file():
                return path
    raise NotFound("there is no file of that path under the folders that are allowed")


def _within(folder: Path, given: str) -> list[Path]:
    """The path with all links followed, where it then lies under the folder."""
    try:
        top = folder.resolve()
        path = (top / given).resolve()
        return [path] if path != top and path.is_relative_to(top) else []
    except (OSError, ValueError, RuntimeError):  # NUL, halves of characters, links in a circle
        return []
