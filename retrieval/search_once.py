"""One search over named videos: by words, or by an image that others are to look like."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from domain.asking import Mode
from domain.errors import BlobGone, InputError, NotFound
from domain.memories import MemoryView
from domain.moments import Retrieval
from domain.time import TimeSpan
from models.ports import Vector
from perception.images import ALIKE, NEARLY_SAME, decode_image, likeness
from retrieval.keyframe_mode import describe, image_evidence, shown_image
from retrieval.people_in_query import names_as_of
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.clips import ClipContents, clip_contents, memory_view
from store.queries.keyframes import AlikeKeyframe, blob_of_image, keyframes_alike
from store.queries.videos import find_video, list_videos

SHOWN = 12
"""Images of a search at most."""
LEAST = 0.7
"""The least cosine of images that are listed after an alike one: 1 in 20 of one scene has less."""
LARGEST_BYTES = 64 * 2**20
"""Bytes of an image at most."""
_REF = re.compile(r"([kf])([1-9]\d{0,17})")


@dataclass(frozen=True, eq=False)
class ExampleImage:
    """What images are to look like: ``name`` in words, and the id of its keyframe, if it is one."""

    name: str
    vector: Vector
    keyframe: int = 0


def example_of(store: Store, view: MemoryView, like: str) -> ExampleImage:
    """Read an example: ``k12`` or ``f7`` is an image in view, anything else the path of one.

    Raises:
        NotFound: There is no such image in view.
        InputError: The file cannot be read as an image.
    """
    if _REF.fullmatch(like):
        return example_of_ref(store, view, like)
    path = Path(like).expanduser()
    try:
        _check_size(path.name, path.stat().st_size)
        return image_example(path.name, path.read_bytes())
    except OSError as error:
        raise InputError(f"{like}: neither an image such as k12 nor a file: {error}") from error


def is_image_ref(ref: str) -> bool:
    """Check whether a ref names an image, as ``k12`` and ``f7`` do."""
    return _REF.fullmatch(ref) is not None


def example_of_ref(store: Store, view: MemoryView, ref: str) -> ExampleImage:
    """Return an image in view, named as in ``k12`` or ``f7``, as an example.

    Raises:
        InputError: It is no such name.
        NotFound: There is no such image in view.
        BlobGone: Its image is missing or cannot be read.
    """
    match = _REF.fullmatch(ref)
    if match is None:
        raise InputError(f"{ref[:20]!r} is not an image such as k12")
    kind, number = match[1], int(match[2])
    with store.begin() as session:
        blob = blob_of_image(session, kind, number, view.scopes)
    if blob is None:
        raise NotFound(f"there is no image {ref} in these videos")
    image = decode_image(store.blobs.get(blob))
    if image is None:
        raise BlobGone("a stored image cannot be read: homer check says which")
    return ExampleImage(ref, likeness(image), number if kind == "k" else 0)


def image_example(name: str, data: bytes) -> ExampleImage:
    """Return an image file's content as an example.

    Raises:
        InputError: It is too large, or cannot be read as an image.
    """
    _check_size(name, len(data))
    image = decode_image(data)
    if image is None:
        raise InputError(f"{name}: cannot be read as an image")
    return ExampleImage(name, likeness(image))


def _check_size(name: str, size: int) -> None:
    if size > LARGEST_BYTES:
        raise InputError(f"{name}: larger than {LARGEST_BYTES // 2**20} MB")


# No model is needed: images are compared by their colours and edges (``perception/images.py``).
def images_alike(store: Store, view: MemoryView, example: ExampleImage) -> Retrieval:
    """Return the keyframes in view that look most like an example, best first.

    Where any is alike, those that are unlike are left out.
    """
    scopes = [scope for scope in view.scopes if scope.last_clip >= 0]
    found = store.run_read_only(
        partial(
            keyframes_alike, scopes=scopes, vector=example.vector, limit=SHOWN, but=example.keyframe
        )
    )
    nothing_close = not found or found[0].cosine < ALIKE
    listed = [one for one in found if nothing_close or one.cosine >= LEAST]
    by_video = {scope.video: scope for scope in scopes}
    videos = dict[str, tuple[ClipContents, dict[str, str]]]()
    for video in dict.fromkeys(one.video for one in listed):
        clips = {one.frame.clip for one in listed if one.video == video}
        with store.begin() as session:
            contents = clip_contents(session, by_video[video], clips)
            videos[video] = contents, names_as_of(session, by_video[video])
    images = tuple(
        shown_image(
            one.video,
            one.frame,
            _description(one, videos[one.video], example),
            float(np.clip(one.cosine, 0, 1)),
        )
        for one in listed
    )
    return Retrieval(
        mode=Mode.KEYFRAME,
        query=f"like {example.name}",
        evidence=tuple(image_evidence(image) for image in images),
        images=images,
        nothing_close=nothing_close,
        searched=f"the keyframes by their likeness to {example.name}",
    )


def _description(
    one: AlikeKeyframe, of_video: tuple[ClipContents, dict[str, str]], example: ExampleImage
) -> str:
    how = "nearly the same as" if one.cosine >= NEARLY_SAME else "like"
    if one.cosine < ALIKE:
        how = "nearest to"
    contents, names = of_video
    frame = one.frame
    described = describe(contents, frame.time_ms, names, frame.description)
    return f"{how} {example.name}; {described}"


def search_once(
    store: Store,
    retrievers: Retrievers,
    mode: Mode,
    query: str,
    videos: Sequence[str] = (),
    as_of_ms: int | None = None,
    focus: int | None = None,
    span: TimeSpan | None = None,
) -> tuple[Retrieval, dict[str, str]]:
    """Search the memory once; return the result, and the titles of all videos by id.

    Args:
        mode: EVENT, VIDEO, KEYFRAME, or NEIGHBOR, which needs a focus.
        query: The query; a search for the images of a time needs none.
        videos: Ids, unambiguous prefixes or titles; all videos if empty.
        as_of_ms: Milliseconds of video time; None: the end.
        focus: The id of the segment to search from.
        span: For KEYFRAME: the time of the images, instead of those closest to the query.

    Raises:
        InputError: The query is empty, nothing has been watched yet, or NEIGHBOR has no focus.
        NotFound: No video has one of the names, or no neighbour has that label.
        Ambiguous: Several videos match a name.
    """
    wanted = query if query.strip() or span is None else str(span)
    if not wanted.strip():
        raise InputError("the query is empty")
    view, titles = view_of_names(store, videos, as_of_ms)
    return retrievers.search(view, mode, wanted, focus, span=span), titles


def search_alike(
    store: Store,
    example: Callable[[MemoryView], ExampleImage],
    videos: Sequence[str] = (),
    as_of_ms: int | None = None,
) -> tuple[Retrieval, dict[str, str]]:
    """Search for images that look like an example; return as ``search_once`` does.

    Args:
        example: Returns the example, given the view.
        videos: Ids, unambiguous prefixes or titles; all videos if empty.
        as_of_ms: Milliseconds of video time; None: the end.

    Raises:
        InputError: Nothing has been watched yet, or the example cannot be read.
        NotFound: No video has one of the names, or the example is not in view.
        Ambiguous: Several videos match a name.
    """
    view, titles = view_of_names(store, videos, as_of_ms)
    return images_alike(store, view, example(view)), titles


def view_of_names(
    store: Store, videos: Sequence[str], as_of_ms: int | None
) -> tuple[MemoryView, dict[str, str]]:
    """Return the view, and the titles of all videos by id."""
    with store.begin() as session:
        titles = {video.id: video.title for video in list_videos(session)}
        names = [find_video(session, name).id for name in videos] or list(titles)
        if not names:
            raise InputError("nothing has been watched yet: homer ingest FILE")
        return memory_view(session, names, as_of_ms), titles
