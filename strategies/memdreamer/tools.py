"""MemDreamer's seven tools over the memory of the videos in view, each as of its clip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from agent.strategy import RunTool, ToolUse
from domain.asking import Evidence
from domain.errors import InputError
from domain.memories import MemoryView, Scope
from domain.search import Extract, Weighed
from domain.time import TimeSpan, format_clock
from domain.wording import split_sentences
from people.corrected import people_as_of
from retrieval.asked import TEMPERATURE, Asked, AskedWords, ask, best_by_option
from retrieval.built_indexes import BuiltIndexes, check_built
from retrieval.closeness import CosineScale, closeness_threshold, cosine_scale
from retrieval.people_in_query import ViewPeople, view_people
from retrieval.result import Retrieval
from strategies.memdreamer.arguments import (
    MacroEventsArguments,
    NodesArguments,
    RelationsArguments,
    ShownArguments,
    SubgraphArguments,
    SummaryArguments,
    SuperEventsArguments,
    TimeArguments,
)
from strategies.memdreamer.hierarchy_view import ENTITY, HierarchyView, StoredHierarchy, Vertex
from strategies.memdreamer.levels import EVENT, MACRO, ROOT, SUPER, TEXT
from strategies.memdreamer.names import (
    GET_MACRO_EVENTS,
    GET_RELATIONS,
    GET_SUBGRAPH,
    GET_SUMMARY,
    GET_SUPER_EVENTS,
    SEARCH_BY_TIME,
    SEARCH_NODES,
)
from strategies.memdreamer.parts import GRAPH, HIERARCHY
from strategies.memdreamer.settings import HierarchySettings
from strategies.memdreamer.shown import KINDS, Showing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.toolbox import Toolbox
    from store.database import Store

QUOTED_FROM, QUOTED = 5, 2
"""Pieces that an answer may quote from, and sentences of one that it quotes, at most."""
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
        people: as of that clip.
        use: the circumstances.
    """

    def __init__(self, scope: Scope, view: HierarchyView, people: ViewPeople, use: ToolUse) -> None:
        self.scope, self.view, self._people = scope, view, people
        self.graph, self.hierarchy = GRAPH not in use.without, HIERARCHY not in use.without
        names = people.names(scope.video)
        self.showing = Showing(view, names, graph=self.graph, hierarchy=self.hierarchy)

    def words_of(self, asked: Asked) -> AskedWords:
        """Return how well its vertices match a question in words, with people's tags."""
        query, options = self._with_tags(asked.query), map(self._with_tags, asked.options)
        return AskedWords(self.view.words, replace(asked, query=query, options=tuple(options)))

    def _with_tags(self, text: str) -> str:
        return " ".join([text, *self._people.tags_in(text)])


class _Scores:
    """How near the vertices of a video are to a question.

    Args:
        video: the video.
        asked: the question.
    """

    def __init__(self, video: _Video, asked: Asked) -> None:
        self._asked, self._order = asked, video.view.order
        self.words = video.words_of(asked)
        vectors = video.view.vectors
        self.cosines = vectors @ asked.vector if vectors.shape[1] else np.zeros(len(vectors))
        self._vectors = vectors

    def cosine(self, ref: str) -> float:
        """Return the cosine of a vertex with the question."""
        return float(self.cosines[self._order[ref]])

    def ranks(self, found: Sequence[Vertex]) -> NDArray[np.float64]:
        """Return how well each of N vertices matches the question, in words and by cosine: (N,)."""
        rows = self._rows(found)
        words: NDArray[np.float64] = self.words.words[rows].astype(np.float64)
        return words / WORDS_A_COSINE + self.cosines[rows].astype(np.float64)

    def best_by_option(self, found: Sequence[Vertex]) -> list[tuple[int, float, str]]:
        """Return each option that a vertex matches in words, how well, and the best one's ref."""
        if not found or not len(self.words.claims):
            return []
        claims = self.words.claims[:, self._rows(found)]
        return [
            (option, float(of_option.max()), found[int(of_option.argmax())].ref)
            for option, of_option in enumerate(claims)
            if of_option.max() > 0
        ]

    def _rows(self, found: Sequence[Vertex]) -> NDArray[np.intp]:
        return np.array([self._order[one.ref] for one in found], np.intp)

    def support(self, ref: str) -> tuple[float, ...]:
        """Return how far a vertex supports each option."""
        row = self._order[ref]
        return self._asked.support(self.words.claims[:, row], self._vectors[row])


class HierarchyTools:
    """The seven tools, which share the memory that is built.

    Args:
        store: the store.
        toolbox: has the text encoder that the memory was built with.
        name: the strategy's, under which the memory is stored.
    """

    def __init__(self, store: Store, toolbox: Toolbox, name: str) -> None:
        self._store, self._toolbox = store, toolbox
        self._indexes = BuiltIndexes(store, name, StoredHierarchy)

    def by_name(self) -> dict[str, RunTool]:
        """Return the tools by their names."""
        return {
            GET_SUMMARY: self.get_summary,
            GET_SUPER_EVENTS: self.get_super_events,
            GET_MACRO_EVENTS: self.get_macro_events,
            GET_SUBGRAPH: self.get_subgraph,
            SEARCH_NODES: self.search_nodes,
            SEARCH_BY_TIME: self.search_by_time,
            GET_RELATIONS: self.get_relations,
        }

    def get_summary(self, view: MemoryView, arguments: SummaryArguments, use: ToolUse) -> Retrieval:
        """Return what each video is as a whole, and its super events with the refs they hold."""
        videos = self._videos(view, use)
        roots = [
            _Chosen(video, one, video.showing.whole(one))
            for video in videos
            for one in video.view.of_level(ROOT)
        ]
        supers = [
            _Chosen(video, one, video.showing.brief(one))
            for video in videos
            for one in _outline(video.view)
        ]
        said = f"the whole and {_count(len(supers), 'super event')}"
        return self._result(GET_SUMMARY, arguments, [*roots, *supers], said, use)

    def get_super_events(
        self, view: MemoryView, arguments: SuperEventsArguments, use: ToolUse
    ) -> Retrieval:
        """Return all super events with their edges, or one with its macro events."""
        videos = self._videos(view, use)
        if arguments.id is None:
            found = [
                _Chosen(video, one, video.showing.whole(one))
                for video in videos
                for one in video.view.of_level(SUPER)
            ]
            said = f"all {_count(len(found), 'super event')}"
        else:
            video, vertex = _known(videos, arguments.id, SUPER)
            below = video.view.children(vertex.ref)
            found = [
                _Chosen(video, vertex, video.showing.whole(vertex)),
                *(_Chosen(video, one, video.showing.brief(one)) for one in below),
            ]
            said = f"{vertex.ref} with {_count(len(below), 'macro event')}"
        return self._result(GET_SUPER_EVENTS, arguments, found, said, use)

    def get_macro_events(
        self, view: MemoryView, arguments: MacroEventsArguments, use: ToolUse
    ) -> Retrieval:
        """Return the macro events of a super event, or those that are named."""
        videos = self._videos(view, use)
        if arguments.super_id is None:
            chosen = [_known(videos, ref, MACRO) for ref in dict.fromkeys(arguments.macro_ids)]
        else:
            video, above = _known(videos, arguments.super_id, SUPER)
            chosen = [(video, one) for one in video.view.children(above.ref)]
        found = [_Chosen(video, one, video.showing.whole(one)) for video, one in chosen]
        said = _count(len(found), "macro event")
        return self._result(GET_MACRO_EVENTS, arguments, found, said, use)

    def get_subgraph(
        self, view: MemoryView, arguments: SubgraphArguments, use: ToolUse
    ) -> Retrieval:
        """Return a macro event with all that is in it, and the edges between."""
        video, macro = _known(self._videos(view, use), arguments.macro_id, MACRO)
        things = video.view.entities_of(macro.ref) if video.graph else []
        inside = video.view.inside(macro.ref)
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
        return self._result(GET_SUBGRAPH, arguments, found, said, use)

    def search_nodes(self, view: MemoryView, arguments: NodesArguments, use: ToolUse) -> Retrieval:
        """Return the nodes nearest to the query, each with its macro event and neighbours.

        Without a language model, the best for each option is found besides.
        """
        asked = ask(self._toolbox.text, arguments.query, arguments.options)
        videos = self._videos(view, use)
        searched = [
            (_Scores(video, asked), list(_searched(video, arguments.node_types)))
            for video in videos
        ]
        found = [
            _Chosen(video, vertex, video.showing.whole(vertex))
            for ref in _nearest(searched, arguments.top_k)
            for video, vertex in [_known(videos, ref)]
        ]
        count = sum(len(vertices) for _, vertices in searched)
        said = f"the {_count(len(found), 'node')} nearest of {count}"
        return self._result(SEARCH_NODES, arguments, found, said, use)

    def search_by_time(self, view: MemoryView, arguments: TimeArguments, use: ToolUse) -> Retrieval:
        """Return the macro events of a stretch of time, and what happens and is read in it."""
        wanted = TimeSpan.of(arguments.start_ms, max(arguments.end_ms, arguments.start_ms + 1))
        videos, found = self._videos(view, use), list[_Chosen]()
        for video in videos:
            of_levels = (MACRO, EVENT, TEXT) if video.hierarchy else (EVENT, TEXT)
            for level in of_levels:
                within = [o for o in video.view.of_level(level) if _overlaps(o.span, wanted)]
                shown = within[:MOST_IN_TIME]
                found += [_Chosen(video, one, video.showing.short(one)) for one in shown]
        _check_time(videos, wanted, found)
        said = f"what there is at {wanted}: {_count(len(found), 'node')}"
        return self._result(SEARCH_BY_TIME, arguments, found, said, use)

    def get_relations(
        self, view: MemoryView, arguments: RelationsArguments, use: ToolUse
    ) -> Retrieval:
        """Return a node or an entity, and those that an edge joins it with, each with its edge."""
        video, vertex = _known(self._videos(view, use), arguments.node_id)
        edges = [
            edge
            for edge in video.view.edges_of(vertex.ref)
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
        return self._result(GET_RELATIONS, arguments, found, said, use)

    def _videos(self, view: MemoryView, use: ToolUse) -> list[_Video]:
        """Return what is known of each video.

        Raises:
            InputError: nothing was built of one, or with another text encoder.
        """
        return [self._video(scope, use) for scope in view.scopes]

    def _video(self, scope: Scope, use: ToolUse) -> _Video:
        index = self._indexes.of(scope.video)
        check_built(scope.video, index.encoder, self._toolbox.text.name)
        with self._store.begin() as session:
            people = people_as_of(session, scope)
        return _Video(scope, index.as_of(scope.last_clip), view_people({scope.video: people}), use)

    def _result(
        self,
        tool: str,
        arguments: ShownArguments,
        found: Sequence[_Chosen],
        said: str,
        use: ToolUse,
    ) -> Retrieval:
        """Return what was found, scored by the query and the options if there are any."""
        if not arguments.query:
            return _unscored(tool, found, said)
        asked = ask(self._toolbox.text, arguments.query, arguments.options)
        scores = {
            one.video.scope.video: _Scores(one.video, asked)
            for one in {one.video.scope.video: one for one in found}.values()
        }
        evidence, weighed = list[Evidence](), list[Weighed]()
        if asked.options:
            found = _bearing(found, scores)
        for one in found:
            own, ref = scores[one.video.scope.video], one.vertex.ref
            evidence.append(_piece(one, self._cosine_scale.nearness(own.cosine(ref))))
            if asked.options:
                weighed.append(Weighed(ref=ref, scores=own.support(ref)))
        best = max((piece.score for piece in evidence), default=0.0)
        # A language model judges itself what is close enough to answer from.
        close = bool(evidence) and use.model is not None
        return Retrieval(
            mode=tool,
            query=asked.query,
            evidence=tuple(evidence),
            nothing_close=not close and best < closeness_threshold(max(1, len(evidence))),
            searched=said,
            weighed=tuple(weighed),
            temperature=TEMPERATURE,
            extract=None if use.model or asked.options else self._extract(asked, found, evidence),
        )

    @cached_property
    def _cosine_scale(self) -> CosineScale:
        return cosine_scale(self._toolbox.text)

    def _extract(
        self, asked: Asked, found: Sequence[_Chosen], evidence: Sequence[Evidence]
    ) -> Extract | None:
        """Quote the sentences nearest to the question from the piece that has the nearest."""
        pairs = sorted(zip(found, evidence, strict=True), key=lambda pair: -pair[1].score)
        best: Extract | None = None
        for one, piece in pairs[:QUOTED_FROM]:
            said = one.video.showing.plain(one.vertex)
            texts = [*split_sentences(said)] or [said]
            cosines = self._toolbox.text.embed(texts) @ asked.vector
            order = sorted(np.argsort(-cosines, kind="stable")[:QUOTED].tolist())
            score = self._cosine_scale.nearness(float(cosines.max()))
            if best is None or score > best.score:
                best = _quote(piece, " ".join(texts[n].strip() for n in order), score)
        return best


def _bearing(found: Sequence[_Chosen], scores: Mapping[str, _Scores]) -> list[_Chosen]:
    """Keep what bears on a question most, and what does on each option, in the given order.

    Support adds up: much that says little would outweigh the little that says much.
    """
    searched = [
        (own, [one.vertex for one in found if one.video.scope.video == video])
        for video, own in scores.items()
    ]
    kept = set(_nearest(searched, HierarchySettings().found))
    return [one for one in found if one.vertex.ref in kept]


def _nearest(searched: Iterable[tuple[_Scores, Sequence[Vertex]]], most: int) -> list[str]:
    """Return the refs of the vertices nearest to a question, then of the best for each option.

    Args:
        searched: the vertices of each video, with how near they are.
        most: of the nearest, at most.
    """
    ranked = list[tuple[float, str]]()
    by_option = list[tuple[int, float, str]]()
    for scores, vertices in searched:
        ranks = scores.ranks(vertices)
        order = np.argsort(-ranks, kind="stable")[:most]
        ranked += [(float(ranks[row]), vertices[row].ref) for row in order]
        by_option += scores.best_by_option(vertices)
    ranked.sort(key=lambda pair: -pair[0])
    refs = [ref for _, ref in ranked[:most]]
    return list(dict.fromkeys([*refs, *best_by_option(by_option)]))


def _piece(one: _Chosen, score: float) -> Evidence:
    vertex = one.vertex
    return Evidence(
        ref=vertex.ref,
        video=one.video.scope.video,
        span=vertex.span,
        text=one.shown,
        score=score,
    )


def _quote(piece: Evidence, text: str, score: float) -> Extract:
    return Extract(text=text, refs=(piece.ref,), video=piece.video, span=piece.span, score=score)


def _unscored(tool: str, found: Sequence[_Chosen], said: str) -> Retrieval:
    """Return what was named by its id or time; the first piece is the one to quote."""
    evidence = tuple(_piece(one, AT_ONCE) for one in found)
    first = found[0].video.showing.plain(found[0].vertex) if found else ""
    return Retrieval(
        mode=tool,
        query="",
        evidence=evidence,
        nothing_close=not evidence,
        searched=said,
        extract=_quote(evidence[0], first, AT_ONCE) if evidence else None,
    )


def _outline(view: HierarchyView) -> Iterator[Vertex]:
    """Yield the super events, and the macro events that are in none yet."""
    yield from view.of_level(SUPER)
    yield from (one for one in view.of_level(MACRO) if view.parent(one.ref) is None)


def _searched(video: _Video, types: Iterable[str]) -> Iterator[Vertex]:
    """Yield the vertices of these types that are searched."""
    levels = {"entity": ENTITY, "event": EVENT, "text": TEXT}
    for kind in dict.fromkeys(types):
        if kind != "entity" or video.graph:
            yield from video.view.of_level(levels[kind])


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


def _check_time(videos: Sequence[_Video], wanted: TimeSpan, found: Sequence[_Chosen]) -> None:
    """Check that a time is known.

    Raises:
        InputError: it is later than what is known.
    """
    ends = [one.span.end_ms for video in videos for one in video.view.of_level(MACRO)]
    known = max(ends, default=0)
    if not found and wanted.start_ms >= known:
        raise InputError(f"what is known ends at {format_clock(known)}, before {wanted}")


def _overlaps(span: TimeSpan, wanted: TimeSpan) -> bool:
    return span.start_ms < wanted.end_ms and max(span.end_ms, span.start_ms + 1) > wanted.start_ms


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"
