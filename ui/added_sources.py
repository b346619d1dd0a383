"""What users of the app may name to be watched: paths of the server, and addresses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from domain.errors import InputError
from domain.words import translate
from flows.addresses import is_address
from flows.uploads import first_file, paths_within
from ui.sign_in import SIGN_IN


@dataclass
class AllowedFolders:
    """The folders of ``homer up --videos``; without any, all of the machine's on one's own."""

    folders: tuple[Path, ...] = ()

    @property
    def any_path(self) -> bool:
        """Whether users may name any path: those who need no sign-in are at this machine."""
        return not self.folders and not SIGN_IN.required


ALLOWED = AllowedFolders()

MAX_UPLOAD_MB = 2048
"""Of one uploaded file, which is in memory until it is stored."""
VIEWER_UPLOADS_MB, UPLOADS_MB = 32, 4 * MAX_UPLOAD_MB
"""Of all uploads that a user has in memory: one who only looks gives images to search by."""


@dataclass(frozen=True)
class AddedSources:
    """The paths and addresses that a user named."""

    paths: tuple[Path, ...] = ()
    urls: tuple[str, ...] = ()


def source_label() -> tuple[str, str]:
    """Return the label of the field, and an example of what goes into it."""
    if ALLOWED.any_path:
        label = translate("File or folder on this machine, or a web address")
        return label, "/home/me/Videos/talk.mp4"
    if ALLOWED.folders:
        return translate("File in a shared folder, or a web address"), "talks/talk.mp4"
    return translate("Web address of a video"), "https://example.org/talk.mp4"


def upload_hint() -> str:
    """Return how large an upload may be, and how longer recordings are added."""
    by_path = ALLOWED.any_path or ALLOWED.folders
    hint = (
        translate(
            "Up to {size} GB each. For longer recordings, give the path or the web address above."
        )
        if by_path
        else translate("Up to {size} GB each. For longer recordings, give the web address above.")
    )
    return hint.format(size=MAX_UPLOAD_MB // 1024)


def parse_source(text: str) -> AddedSources:
    """Return what a user named in the field.

    Raises:
        InputError: it is a path that may not be named, or that is no file.
    """
    text = text.strip()
    if not text:
        return AddedSources()
    if is_address(text):
        return AddedSources(urls=(text,))
    if ALLOWED.any_path:
        return AddedSources(paths=(Path(text),))
    found = first_file(paths_within(ALLOWED.folders, text))
    if found is None:
        raise InputError(_refusal())
    return AddedSources(paths=(found,))


def _refusal() -> str:
    if ALLOWED.folders:
        return translate("there is no such file in the folders that videos may be added from")
    return translate(
        "paths of the server may not be named here: its operator allows folders with "
        "`homer up --videos FOLDER`"
    )
