"""Checks a video's event graph, and its stored images against their digests."""

from __future__ import annotations

from domain.base import Frozen
from domain.errors import BlobGone
from domain.media import ClipState
from memory.event_graph import CheckedGraph, GraphFault, GraphFinding, find_faults
from store.database import Store
from store.progress import Megabytes, Progress
from store.queries import blobs, clips, events, outline
from store.queries.videos import find_video


class VideoCheck(Frozen):
    """The result of checking a video; ``clips``, ``segments``, ``edges``, ``images`` are counts."""

    video: str
    title: str
    clips: int
    segments: int
    edges: int
    images: int
    findings: tuple[GraphFinding, ...]

    @property
    def exit_code(self) -> int:
        """The exit code of a command that finds this."""
        return 1 if self.findings else 0


def check_memory(
    store: Store, name: str, as_of_ms: int | None = None, progress: Progress | None = None
) -> VideoCheck:
    """Check the whole event graph of a video at a moment of video time (None: now).

    All its images are also compared with their digests, including those of later moments.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        video = find_video(session, name)
        last = clips.memory_view(session, [video.id], as_of_ms).scopes[0].last_clip
        stored = clips.clips_of(session, video.id)
        patches = [one for one in events.patches_of(session, video.id) if one.at_clip <= last]
        covered = {clip for one in patches for clip in range(one.first_clip, one.at_clip + 1)}
        graph = CheckedGraph(
            stored=frozenset(
                clip.index for clip in stored if clip.state == ClipState.DONE and clip.index <= last
            ),
            due=frozenset(covered),
            pending=frozenset(patches[-1].pending if patches else ()),
            segments=tuple(outline.segments_at(session, video.id, last)),
            edges=tuple(outline.edges_at(session, video.id, last)),
        )
        images = blobs.blobs_of(session, video.id)
    # Images that are missing or damaged, except for those deleted meanwhile.
    megabytes = Megabytes(progress, "images, MB", sum(images.values())) if progress else None
    bad: dict[str, GraphFault] = {}
    for sha, size in images.items():
        try:
            store.blobs.get(sha)
        except BlobGone:
            bad[sha] = GraphFault.DAMAGED if store.blobs.exists(sha) else GraphFault.MISSING
        if megabytes:
            megabytes.step(size)
    with store.begin() as session:
        present = blobs.blobs_of(session, video.id) if bad else {}
    bad_images = [
        GraphFinding(
            fault=bad[sha],
            text=f"a stored image is {bad[sha]}: restore it from a back-up, or watch the video "
            "again",
            refs=(sha,),
        )
        for sha in sorted(bad.keys() & present.keys())
    ]
    return VideoCheck(
        video=video.id,
        title=video.title,
        clips=len(graph.stored),
        segments=len(graph.segments),
        edges=len(graph.edges),
        images=len(images),
        findings=(*find_faults(graph), *bad_images),
    )
