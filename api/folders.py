"""Restrict the files that may be added to the folders that the operator named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

from api.problems import RequestRefused
from domain.errors import InputError, NotFound
from flows.uploads import first_file, paths_within

_URL = re.compile(r"\s*[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
URL_REFUSED = (
    "URLs are not fetched: a client could make the server connect anywhere. Put the "
    "file into a folder of the server, or have its operator run `homer watch` on a stream"
)


class OutsideFolder(RequestRefused):
    """The path is outside the folders; the same error whether the file exists or not."""

    def __init__(self, folders: Sequence[Path]) -> None:
        serve_hint = "have the operator start the server with `homer serve --videos FOLDER`"
        hint = "give a path in a folder that the operator allowed" if folders else serve_hint
        detail = "the path is not in a folder that videos may be added from"
        super().__init__(HTTPStatus.FORBIDDEN, "outside", detail, hint)


def reject_url(text: str) -> None:
    """Reject a URL.

    Raises:
        InputError: the text is a URL.
    """
    if _URL.match(text):
        raise InputError(URL_REFUSED)


def allowed_file(folders: Sequence[Path], given: str) -> Path:
    """Return a file by its path, absolute or relative to one of the folders; links are followed.

    Raises:
        OutsideFolder: it is not in any of them.
        NotFound: there is no file there.
    """
    candidates = paths_within(folders, given)
    if not candidates:
        raise OutsideFolder(folders)
    found = first_file(candidates)
    if found is None:
        raise NotFound("there is no such file in the allowed folders")
    return found
