"""Opens the images that an answer cites with this machine's own program for images."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from cli.console import note
from domain.asking import Answer, names_image
from domain.errors import BlobGone
from library.moments import frame_at
from store.database import Store
from store.files import create_private, make_private

FOLDER = "pictures"
"""Below the folder ``run`` of the data directory, with the images that were opened last."""


def open_cited(store: Store, answer: Answer) -> None:
    """Open the images that an answer cites; say where they are if no program opens them."""
    files = _write_cited(store, answer)
    if not files:
        note("this answer cites no image")
    for file in files:
        if typer.launch(str(file)) != 0:
            return note(f"no program opened the images: they are in {file.parent}")
    return None


def _write_cited(store: Store, answer: Answer) -> list[Path]:
    """Write the cited images to files with their refs as names, instead of earlier ones."""
    folder = store.home.run / FOLDER
    make_private(folder)
    for old in folder.glob("[kf]*.jpg"):
        old.unlink(missing_ok=True)
    files = []
    for citation in answer.citations:
        if not names_image(citation.ref):
            continue
        frame = frame_at(store, citation.video, citation.span.start_ms, citation.ref)
        if frame is None:
            continue
        try:
            image = store.blobs.get(frame.blob)
        except BlobGone:
            note(f"the image {citation.ref} is missing or damaged")
            continue
        file = folder / f"{frame.ref}.jpg"
        with os.fdopen(create_private(file, new=True), "wb") as stream:
            stream.write(image)
        files.append(file)
    return files
