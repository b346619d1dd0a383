"""The chapters of a video, as MemDreamer's hierarchy has them; pure."""

from __future__ import annotations

from collections.abc import Sequence

from domain.built import BuiltChapter, BuiltMemory
from strategies.memdreamer.hierarchy_view import HierarchyView, StoredHierarchy, Vertex
from strategies.memdreamer.levels import EVENT, MACRO, ROOT, SUPER

CHAPTERS = (SUPER, MACRO, EVENT)
"""The levels of chapters below the whole video, coarse ones first."""


def chapters(built: BuiltMemory, last_clip: int, depth: int) -> BuiltChapter | None:
    """Return the whole video with its chapters as of a clip; None where nothing was built by then.

    Args:
        built: all that was built of the video.
        last_clip: the clip.
        depth: levels of chapters, from 1 to 3: super events, macro events, micro-events.
    """
    view = StoredHierarchy(built).as_of(last_clip)
    roots = view.of_level(ROOT)
    if not roots:
        return None
    root = roots[0]
    parts = tuple(_chapter(view, part, depth) for part in view.children(root.ref))
    return BuiltChapter(root.span, root.label, root.text, parts)


def _chapter(view: HierarchyView, one: Vertex, depth: int) -> BuiltChapter:
    parts: Sequence[Vertex] = ()
    if depth > 1:
        below = view.children(one.ref) if one.level == SUPER else view.inside(one.ref)
        parts = [part for part in below if part.level in CHAPTERS]
    finer = tuple(_chapter(view, part, depth - 1) for part in parts)
    if one.level == EVENT:
        return BuiltChapter(one.span, one.text, "", finer)
    description = one.text.splitlines()[0] if one.text else ""
    return BuiltChapter(one.span, one.label, description, finer)
