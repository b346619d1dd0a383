"""MemDreamer's seven tools over the memory of the videos in view, each as of its clip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from agent.strategy import RunTool, ToolUse
from domain.asking import Evidence, quote_of
from domain.errors import InputError
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.sentences import split_sentences
from domain.time import TimeSpan, format_clock
from retrieval.built_views import BuiltIndexes, check_built
from retrieval.lines import Scores
from retrieval.people_in_query import ViewPeople, view_people
from retrieval.query_context import TEMPERATURE
from retrieval.relevance import CosineScale, closeness_threshold, cosine_scale
from store.queries.characters import people_in_view
from strategies.asked import Asked, Supported, ask, joined, quote_nearest
from strategies.memdreamer import settings
from strategies.memdreamer.hierarchy_view import (
    ENTITY,
    KINDS,
    HierarchyView,
    Showing,
    StoredHierarchy,
    Vertex,
)
from strategies.memdreamer.levels import EVENT, MACRO, ROOT, SUPER, TEXT

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store

QUOTED_FROM = 5
"""Pieces that an answer may quote from, at most."""
MOST_IN_TIME, MOST_JOINED = 80, 80
"""Nodes of a level in a stretch of time, and of those joined with one, that are shown, at most."""
AT_ONCE = 1.0
"""Score of what was named by its id or time, without a query."""
WORDS_A_COSINE = 4.0
"""Score by words that counts as much as a cosine of 1."""


@dataclass(frozen=True)
class _Chosen:
    """A vertex of a video, and how it is shown."""

    video: _Video
    vertex: Vertex
    shown: str


class _Video:
    """What is known of a video when a tool is used.

    Args:
        scope: the video, and up to which clip.
        view: its memory after that clip.
        memory: that of all videos, with the moment of the question.
        people: of all videos, as of that moment.
    """

    def __init__(
        self,
        scope: Scope,
        view: HierarchyView,
        memory: MemoryView,
        people: ViewPeople,
        use: ToolUse,
    ) -> None:
        self.scope, self.view, self.memory, self.people = scope, view, memory, people
        self.graph, self.hierarchy = (
            settings.GRAPH not in use.without,
            settings.HIERARCHY not in use.without,
        )
        names = people.names(scope.video)
        self.showing = Showing(view, names, graph=self.graph, hierarchy=self.hierarchy)

    def cosines(self, asked: Asked) -> Scores:
        """Return the cosine of each vertex with a question, (N,)."""
        vectors = self.view.vectors
        found = vectors @ asked.vector if vectors.shape[1] else np.zeros(len(vectors))
        return found.astype(np.float64)


class HierarchyTools:
    """The seven tools, which share the memory that is built.

    Args:
        toolbox: has the text encoder that the memory was built with.
        name: the strategy's, under which the memory is stored.
    """

    def __init__(self, store: Store, toolbox: Toolbox, name: str) -> None:
        self._store, self._toolbox = store, toolbox
        self._indexes = BuiltIndexes(store, name, StoredHierarchy)
        self._latest: tuple[object, Supported] | None = None

    def by_name(self) -> dict[str, RunTool]:
        return {
            settings.GET_SUMMARY: self.get_summary,
            settings.GET_SUPER_EVENTS: self.get_super_events,
            settings.GET_MACRO_EVENTS: self.get_macro_events,
            settings.GET_SUBGRAPH: self.get_subgraph,
            settings.SEARCH_NODES: self.search_nodes,
            settings.SEARCH_BY_TIME: self.search_by_time,
            settings.GET_RELATIONS: self.get_relations,
        }

    def get_summary(
        self, view: MemoryView, arguments: settings.SummaryArguments, use: ToolUse
    ) -> Retrieval:
        """Return what each video is as a whole, and its super events with the refs they hold."""
        videos = self._videos(view, use)
        roots = [
            _Chosen(video, one, video.showing.whole(one))
            for video in videos
            for one in video.view.of_level[ROOT]
        ]
        supers = [
            _Chosen(video, one, video.showing.brief(one))
            for video in videos
            # With the macro events that are in none yet.
            for one in [*video.view.of_level[SUPER], *video.view.of_level[MACRO]]
            if one.level == SUPER or one.ref not in video.view.parents
        ]
        said = f"the whole and {_count(len(supers), 'super event')}"
        return self._result(settings.GET_SUMMARY, arguments, videos, [*roots, *supers], said, use)

    def get_super_events(
        self, view: MemoryView, arguments: settings.SuperEventsArguments, use: ToolUse
    ) -> Retrieval:
        """Return all super events with their edges, or one with its macro events."""
        videos = self._videos(view, use)
        if arguments.id is None:
            found = [
                _Chosen(video, one, video.showing.whole(one))
                for video in videos
                for one in video.view.of_level[SUPER]
            ]
            said = f"all {_count(len(found), 'super event')}"
        else:
            video, vertex = _known(videos, arguments.id, SUPER)
            below = video.view.children[vertex.ref]
            found = [
                _Chosen(video, vertex, video.showing.whole(vertex)),
                *(_Chosen(video, one, video.showing.brief(one)) for one in below),
            ]
            said = f"{vertex.ref} with {_count(len(below), 'macro event')}"
        return self._result(settings.GET_SUPER_EVENTS, arguments, videos, found, said, use)

    def get_macro_events(
        self, view: MemoryView, arguments: settings.MacroEventsArguments, use: ToolUse
    ) -> Retrieval:
        """Return the macro events of a super event, or those that are named."""
        videos = self._videos(view, use)
        if arguments.super_id is None:
            chosen = [_known(videos, ref, MACRO) for ref in dict.fromkeys(arguments.macro_ids)]
        else:
            video, above = _known(videos, arguments.super_id, SUPER)
            chosen = [(video, one) for one in video.view.children[above.ref]]
        found = [_Chosen(video, one, video.showing.whole(one)) for video, one in chosen]
        said = _count(len(found), "macro event")
        return self._result(settings.GET_MACRO_EVENTS, arguments, videos, found, said, use)

    def get_subgraph(
        self, view: MemoryView, arguments: settings.SubgraphArguments, use: ToolUse
    ) -> Retrieval:
        """Return a macro event with all that is in it, and the edges between."""
        videos = self._videos(view, use)
        video, macro = _known(videos, arguments.macro_id, MACRO)
        things = video.view.entities_of[macro.ref] if video.graph else []
        inside = video.view.inside[macro.ref]
        above = [_Chosen(video, macro, video.showing.short(macro))] if video.hierarchy else []
        found = above + [
            _Chosen(video, one, video.showing.in_graph(one, macro.ref))
            for one in [*things, *inside]
        ]
        count = sum(edge.macro == macro.ref for edge in video.view.edges) if video.graph else 0
        said = (
            f"{macro.ref} with {_count(len(things), 'entity', 'entities')}, "
            f"{_count(len(inside), 'event and text', 'events and texts')}, {_count(count, 'edge')}"
        )
        return self._result(settings.GET_SUBGRAPH, arguments, videos, found, said, use)

    def search_nodes(
        self, view: MemoryView, arguments: settings.NodesArguments, use: ToolUse
    ) -> Retrieval:
        """Return the nodes nearest to the query, each with its macro event and neighbours.

        Without a language model, the best for each option is found besides.
        """
        videos = self._videos(view, use)
        asked = self._asked(videos, arguments)
        ranks = _ranks(asked, videos)
        searched = [
            (video, one) for video in videos for one in _searched(video, arguments.node_types)
        ]
        near = sorted(searched, key=lambda pair: -ranks[pair[1].ref])[: arguments.top_k]
        best = {*self._supported(asked, videos, {}).best()}
        near += [
            (video, max(moment, key=lambda one: ranks[one.ref]))
            for video in videos
            for moment in video.view.moments
            if moment[0].ref in best
        ]
        chosen = {vertex.ref: (video, vertex) for video, vertex in near}
        found = [_Chosen(video, one, video.showing.whole(one)) for video, one in chosen.values()]
        said = f"the {_count(len(found), 'node')} nearest of {len(searched)}"
        return self._result(settings.SEARCH_NODES, arguments, videos, found, said, use)

    def search_by_time(
        self, view: MemoryView, arguments: settings.TimeArguments, use: ToolUse
    ) -> Retrieval:
        """Return the macro events of a stretch of time, and what happens and is read in it."""
        wanted = TimeSpan.of(arguments.start_ms, max(arguments.end_ms, arguments.start_ms + 1))
        videos, found = self._videos(view, use), list[_Chosen]()
        for video in videos:
            of_levels = (MACRO, EVENT, TEXT) if video.hierarchy else (EVENT, TEXT)
            for level in of_levels:
                within = [
                    o
                    for o in video.view.of_level[level]
                    if o.span.start_ms < wanted.end_ms
                    and max(o.span.end_ms, o.span.start_ms + 1) > wanted.start_ms
                ]
                shown = within[:MOST_IN_TIME]
                found += [_Chosen(video, one, video.showing.short(one)) for one in shown]
        # Check that a time is known.
        ends = [one.span.end_ms for video in videos for one in video.view.of_level[MACRO]]
        known = max(ends, default=0)
        if not found and wanted.start_ms >= known:
            raise InputError(f"what is known ends at {format_clock(known)}, before {wanted}")
        said = f"what there is at {wanted}: {_count(len(found), 'node')}"
        return self._result(settings.SEARCH_BY_TIME, arguments, videos, found, said, use)

    def get_relations(
        self, view: MemoryView, arguments: settings.RelationsArguments, use: ToolUse
    ) -> Retrieval:
        """Return a node or an entity, and those that an edge joins it with, each with its edge."""
        videos = self._videos(view, use)
        video, vertex = _known(videos, arguments.node_id)
        edges = [
            edge
            for edge in video.view.edges_of[vertex.ref]
            if arguments.direction == "both"
            or (edge.subject == vertex.ref) == (arguments.direction == "out")
        ]
        joined: dict[str, list[str]] = {}
        for edge in edges:
            joined.setdefault(edge.other(vertex.ref), []).append(video.showing.edge(edge))
        found = [_Chosen(video, vertex, video.showing.short(vertex))]
        for ref, lines in list(joined.items())[:MOST_JOINED]:
            other = video.view.vertices[ref]
            shown = "\n".join([video.showing.short(other), *lines])
            found.append(_Chosen(video, other, shown))
        said = f"{vertex.ref} with {_count(len(edges), 'edge')}"
        return self._result(settings.GET_RELATIONS, arguments, videos, found, said, use)

    def _videos(self, view: MemoryView, use: ToolUse) -> list[_Video]:
        """Return what is known of each video.

        Raises:
            InputError: nothing was built of one, or with another text encoder.
        """
        with self._store.begin() as session:
            people = view_people(people_in_view(session, view.scopes))
        videos = []
        for scope in view.scopes:
            index = self._indexes.of(scope.video)
            check_built(scope.video, index.encoder, self._toolbox.text.name)
            videos.append(_Video(scope, index.as_of(scope.last_clip), view, people, use))
        return videos

    def _asked(self, videos: Sequence[_Video], arguments: settings.ShownArguments) -> Asked:
        view, people = videos[0].memory, videos[0].people
        return ask(self._toolbox.text, arguments.query, arguments.options, view, people)

    def _supported(
        self, asked: Asked, videos: Sequence[_Video], shown: Mapping[str, float]
    ) -> Supported:
        """Return how far each moment of videos supports the options.

        Its ref is that of its node that is shown and ranks highest, else of its first. The steps of
        a walk ask the same: what was computed last is kept.
        """
        views = [video.view for video in videos]
        key = (asked.question, views)
        latest = self._latest
        if latest is None or latest[0] != key:
            latest = (key, asked.supported(joined([view.pieces for view in views])))
            self._latest = latest
        refs = [
            max((o.ref for o in one if o.ref in shown), key=shown.__getitem__, default=one[0].ref)
            for view in views
            for one in view.moments
        ]
        return replace(latest[1], refs=refs if latest[1].refs else ())

    def _result(
        self,
        tool: str,
        arguments: settings.ShownArguments,
        videos: Sequence[_Video],
        found: Sequence[_Chosen],
        said: str,
        use: ToolUse,
    ) -> Retrieval:
        """Return what was found, scored by the query and the options if there are any."""
        if not arguments.query or not videos:
            # What was named by its id or time; the first piece is the one to quote.
            named = tuple(_piece(one, AT_ONCE) for one in found)
            first = found[0].video.showing.plain(found[0].vertex) if found else ""
            return Retrieval(
                mode=tool,
                query="",
                evidence=named,
                nothing_close=not named,
                searched=said,
                quotes=(quote_of(named[0], first, AT_ONCE),) if named else (),
            )
        asked = self._asked(videos, arguments)
        ranks = _ranks(asked, videos)
        if arguments.options and tool != settings.SEARCH_NODES:
            near = sorted(found, key=lambda one: -ranks[one.vertex.ref])
            kept = {one.vertex.ref for one in near[: settings.HierarchySettings().found]}
            found = [one for one in found if one.vertex.ref in kept]
        vectors = [one.vertex.vector for one in found]
        cosines = [0.0 if own is None else float(own @ asked.vector) for own in vectors]
        scores = map(self._cosine_scale.nearness, cosines)
        evidence = [_piece(one, score) for one, score in zip(found, scores, strict=True)]
        shown = {piece.ref: ranks[piece.ref] for piece in evidence}
        pairs = sorted(zip(evidence, found, strict=True), key=lambda pair: -pair[0].score)
        plain = [(piece, one.video.showing.plain(one.vertex)) for piece, one in pairs[:QUOTED_FROM]]
        sentences = [(piece, [*split_sentences(text)] or [text]) for piece, text in plain]
        best = max((piece.score for piece in evidence), default=0.0)
        # A language model judges itself what is close enough to answer from.
        close = bool(evidence) and use.model is not None
        return Retrieval(
            mode=tool,
            query=asked.question.text,
            evidence=tuple(evidence),
            nothing_close=not close and best < closeness_threshold(max(1, len(evidence))),
            searched=said,
            weighed=self._supported(asked, videos, shown).weighed(shown),
            temperature=TEMPERATURE,
            quotes=()
            if use.model or arguments.options
            else quote_nearest(self._toolbox.text, self._cosine_scale, asked.vector, sentences),
        )

    @cached_property
    def _cosine_scale(self) -> CosineScale:
        return cosine_scale(self._toolbox.text)


def _ranks(asked: Asked, videos: Sequence[_Video]) -> dict[str, float]:
    """Return how well each vertex matches a question, in words and by cosine, by its ref."""
    return {
        ref: rank
        for video in videos
        for ref, rank in zip(
            video.view.order,
            (asked.matches(video.view.words.of) / WORDS_A_COSINE + video.cosines(asked)).tolist(),
            strict=True,
        )
    }


def _piece(one: _Chosen, score: float) -> Evidence:
    vertex = one.vertex
    return Evidence(
        ref=vertex.ref, video=one.video.scope.video, span=vertex.span, text=one.shown, score=score
    )


def _searched(video: _Video, types: Iterable[str]) -> Iterator[Vertex]:
    levels = {"entity": ENTITY, "event": EVENT, "text": TEXT}
    for kind in dict.fromkeys(types):
        if kind != "entity" or video.graph:
            yield from video.view.of_level[levels[kind]]


def _known(videos: Sequence[_Video], ref: str, level: str | None = None) -> tuple[_Video, Vertex]:
    """Return the vertex of a ref and its video.

    Raises:
        InputError: it is of another video, not known as of the moment, or of another level.
    """
    for video in videos:
        vertex = video.view.vertices.get(ref)
        if vertex is not None and (level is None or vertex.level == level):
            return video, vertex
        if vertex is not None and level is not None:
            is_a = KINDS.get(vertex.level, vertex.level)
            raise InputError(f"{ref} is no {KINDS[level]}: it is of the kind {is_a!r}")
    what = KINDS[level] if level else "node or entity"
    raise InputError(
        f"there is no {what} {ref} in what is asked about, as of this moment: use an id as shown"
    )


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"
