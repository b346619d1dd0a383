"""The statements of a search on a real database: exact, as of a clip, and by their indexes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from sqlalchemy import text

from domain.errors import NotFound
from domain.memories import Scope
from people.identities import normalise_rows
from retrieval.terms import database_words, terms
from store import vector_index
from store.database import Store, open_store
from store.driver import driver_of
from store.home import Home
from store.queries import candidates, clips, people_in_view, search
from store.queries.candidates import (
    EVERYTHING,
    Restriction,
    clips_with_words,
    lines_of_clips,
    near_clips,
    near_lines,
    read_lines,
    videos_with_words,
)
from store.queries.conditions import Reader
from store.queries.people_in_view import (
    lines_mentioning,
    names_of_speakers,
    speakers_in_view,
    videos_naming,
)
from store.queries.search import read_segments, view_size
from store.vector_index import has_index, index_statement
from tests.support.remembered import (
    CLIP_MS,
    SIZE,
    Event,
    Said,
    WordEmbedder,
    add_event_graph,
    identity_of,
    name,
    watch,
)

V, W = "0123456789abcdef", "fedcba9876543210"


T = TypeVar("T")


def scope(last_clip: int, video: str = V) -> Scope:
    return Scope(video=video, last_clip=last_clip)


def read(store: Store, query: Callable[[Reader], T]) -> T:
    with store.begin() as session:
        return query(session)


@pytest.fixture
def watched(store: Store) -> Store:
    clips = [
        [Said("second", 9), Said("oldest", 1, until=2)],
        [],
        [Said("third", 3, speaker="Ann")],
        [Said("<face_0> and <face_1> meet", who=("<face_0>", "<face_1>"), source="seen")],
        [Said("東京タワーを見る"), Said("Das Mädchen hört die Übung", 5, speaker="Jörg")],
    ]
    watch(store, V, clips)
    watch(store, W, [[Said("another video", speaker="Ann")], [Said("<face_1> waves")]])
    return store


# Lines


def test_lines_of_clips_are_the_stored_rows(watched: Store) -> None:
    scopes = [scope(1, W), scope(4)]
    clips = [(1, 4), (1, 0), (1, 1), (0, 0), (1, 4)]
    found = read(watched, lambda db: lines_of_clips(db, scopes, clips, SIZE))
    rows = read(watched, lambda db: read_lines(db, found.id.tolist()))
    lines = [rows[one] for one in found.id.tolist()]
    assert [line.text for line in lines] == [
        *("another video", "second", "東京タワーを見る", "Das Mädchen hört die Übung")
    ]
    assert found.video.tolist() == [0, 1, 1, 1]
    for field in ("clip", "start_ms", "end_ms"):
        assert getattr(found, field).tolist() == [getattr(line, field) for line in lines]
    assert found.clip_start_ms.tolist() == [CLIP_MS * line.clip for line in lines]
    assert found.clip_end_ms.tolist() == [CLIP_MS * (line.clip + 1) for line in lines]
    assert np.allclose(found.vectors, WordEmbedder().embed([r.text for r in lines]), atol=1e-3)


def test_the_size_of_a_view(watched: Store) -> None:
    size = read(watched, lambda db: view_size(db, [scope(2), scope(1, W)]))
    assert (size.clips, size.lines) == (5, 5)
    assert (size.start_ms, size.end_ms) == (0, 3 * CLIP_MS)
    with pytest.raises(NotFound, match="homer videos"):
        read(watched, lambda db: view_size(db, [scope(0), scope(0, "0" * 16)]))


# Words


def holding(store: Store, words: str, *scopes: Scope) -> dict[str, list[tuple[int, ...]]]:
    """By search term: (number of the scope, clip, lines)."""
    phrases = database_words(words)
    found = read(store, lambda db: clips_with_words(db, scopes, [*phrases.values()]))
    return {
        term: sorted(map(tuple, found[n].tolist())) for n, term in enumerate(phrases) if n in found
    }


@pytest.mark.parametrize(
    ("words", "clips"),
    [
        ("second", {"second": [(0, 0, 1)]}),
        ("meeting", {"meet": [(0, 3, 1)]}),
        ("<face_1>", {"face_1": [(0, 3, 1), (1, 1, 1)]}),
        ("<face_2>", {}),
        ("東京", {"東京": [(0, 4, 1)]}),
        ("京東", {}),
        ("Mädchen", {"mädchen": [(0, 4, 1)]}),
        ("übung", {"übung": [(0, 4, 1)]}),
        ("Ann", {"ann": [(0, 2, 1), (1, 0, 1)]}),
        ("Jörg", {"jörg": [(0, 4, 1)]}),
        ("nowhere 'quoted' & | ! :*", {}),
    ],
)
def test_words_are_found_in_any_form_and_script(
    watched: Store, words: str, clips: dict[str, list[tuple[int, ...]]]
) -> None:
    assert holding(watched, words, scope(4), scope(1, W)) == clips
    assert set(clips) <= set(terms(words))


@pytest.mark.parametrize(
    ("words", "clips"),
    [("0.3", [0]), ("0.5", []), ("3", [1]), ("1,200", [0]), ("12:30", [0]), ("200", [0, 1])],
)
def test_a_number_with_separators_is_one_word(store: Store, words: str, clips: list[int]) -> None:
    watch(store, V, [[Said("above 0.3 of 1,200 at 12:30.")], [Said("chapter 3 of 200")]])
    assert [clip for _, clip, _ in holding(store, words, scope(1)).get(words, [])] == clips


def test_words_are_found_as_of_a_clip(watched: Store) -> None:
    assert holding(watched, "oldest", scope(1)) == {"oldest": [(0, 0, 1)]}
    assert holding(watched, "oldest", scope(2)) == {}
    assert holding(watched, "third", scope(1)) == {}


# People and segments


def test_lines_that_mention_a_person_are_sorted_by_distance(watched: Store) -> None:
    watch(watched, V, [[Said("<face_1> sings", who=("<face_1>",))]], first=5)
    vector = WordEmbedder().embed(["sings"])[0]

    def mentioned(last: int, *tags: str, clips: Sequence[int] | None = None) -> list[int]:
        found = read(
            watched,
            lambda db: lines_mentioning(db, [scope(last)], {V: set(tags)}, vector, 9, clips),
        )
        assert len({one.id for one in found}) == len(found)
        return [one.clip for one in found]

    assert mentioned(5, "<face_1>") == [5, 3]
    assert mentioned(5, "<face_1>", "<face_0>") == [5, 3]
    assert mentioned(5, "<face_0>") == [3]
    assert mentioned(4, "<face_1>") == [3]
    assert mentioned(5, "<face_1>", clips=[3, 4]) == [3]
    assert mentioned(5, "<voice_1>") == mentioned(5) == mentioned(2, "<face_1>") == []
    others = {W: {"<face_0>"}}
    assert not read(watched, lambda db: lines_mentioning(db, [scope(5)], others, vector, 9))


def test_speakers_in_view_are_counted(watched: Store) -> None:
    scopes = [scope(4), scope(1, W)]
    assert read(watched, lambda db: speakers_in_view(db, scopes)) == {"Ann": 2, "Jörg": 1}
    assert read(watched, lambda db: speakers_in_view(db, [scope(1)])) == {}
    names = ["Ann", "Jörg", "Bob"]
    assert read(watched, lambda db: names_of_speakers(db, scopes, names)) == {"Ann", "Jörg"}
    assert read(watched, lambda db: names_of_speakers(db, [scope(1)], names)) == set()


def test_videos_with_a_person_of_a_name_are_found(watched: Store) -> None:
    name(watched, V, 0, "Ada Lovelace", "<face_0>")
    scopes = [scope(4), scope(1, W)]
    assert read(watched, lambda db: videos_naming(db, scopes, ["lovelace"])) == {V}
    assert read(watched, lambda db: videos_naming(db, scopes, ["the", "ada"])) == {V}
    assert read(watched, lambda db: videos_naming(db, scopes, ["a", "love"])) == set()
    assert read(watched, lambda db: videos_naming(db, [scope(1, W)], ["ada"])) == set()
    assert read(watched, lambda db: videos_naming(db, scopes, [])) == set()


def test_segments_are_those_valid_in_the_view(watched: Store) -> None:
    events = [
        Event(0, "tea", "early", (0, 1), since=1, until=3),
        Event(0, "tea", "late", (0, 1, 3), since=3),
        Event(1, "hollow", "no clips", (), since=0),
    ]
    ids = add_event_graph(watched, V, events)
    vector = WordEmbedder().embed(["tea. early"])[0]

    def seen(last: int) -> list[tuple[int, list[int], str]]:
        scopes = [scope(0, W), scope(last)]
        near = read(watched, lambda db: search.segments_in_view(db, scopes, vector))
        found = near.id.tolist()
        rows = read(watched, lambda db: read_segments(db, scopes, found))
        texts = read(watched, lambda db: search.segment_texts(db, scopes, found))
        clips = np.split(near.clips, np.cumsum(near.counts))
        assert texts == {one: f"{rows[one].label} {rows[one].summary}" for one in found}
        assert all(tuple(own) == rows[one].clips for one, own in zip(found, clips, strict=False))
        assert (near.video == 1).all()
        return [(one, list(rows[one].clips), rows[one].summary) for one in found]

    assert seen(0) == []
    assert seen(1) == seen(2) == [(ids[0], [0, 1], "early")]
    assert seen(3) == [(ids[0], [0, 1, 3], "late")]
    near = read(watched, lambda db: search.segments_in_view(db, [scope(2)], vector))
    assert near.cosine.tolist() == [pytest.approx(1, abs=1e-2)]


# Meaning


CLIPS, LINES, VIDEOS = 60, 12, 5
NEAR = 0.5
"""How far lines of a clip are spread around the clip's own direction."""


class Library:
    """Several videos of many lines with vectors, and the same as arrays."""

    def __init__(self, store: Store) -> None:
        random = np.random.default_rng(5)
        count = VIDEOS * CLIPS * LINES
        self.videos = [f"{number:016x}" for number in range(1, VIDEOS + 1)]
        self.video = np.repeat(np.arange(VIDEOS), CLIPS * LINES)
        self.clip = np.tile(np.repeat(np.arange(CLIPS), LINES), VIDEOS)
        self.start_ms = self.clip * CLIP_MS + np.tile(np.arange(LINES) * 2000, VIDEOS * CLIPS)
        self.until = np.where(random.random(count) < 0.2, self.clip + 5, 10**6)
        self.speaker = random.choice(["Ann", "Bob", ""], size=count)
        self.mentions = random.random(count) < 0.1
        centres = np.repeat(random.normal(size=(count // LINES, SIZE)), LINES, axis=0)
        spread = NEAR * random.normal(size=(count, SIZE))
        self.vectors = normalise_rows(centres + spread).astype(np.float16).astype(np.float32)
        for video in self.videos:
            watch(store, video, [[] for _ in range(CLIPS)])
        with store.begin() as session:
            people = [identity_of(session, video, "<face_1>") for video in self.videos]
            self._fill(session.connection(), people)
            session.execute(text("ANALYZE"))
        self.people = tuple(people)

    def _fill(self, connection: Any, people: list[int]) -> None:
        columns = "video_id, clip, kind, text, start_ms, end_ms, source, speaker, superseded_at"
        copying = f"COPY memories ({columns}, embedding) FROM STDIN"
        with driver_of(connection).cursor() as cursor:
            with cursor.copy(copying) as copy:
                for n in range(len(self.clip)):
                    copy.write_row(self._row(n))
            ids = [row[0] for row in cursor.execute("SELECT id FROM memories ORDER BY id")]
            links = [(ids[n], people[self.video[n]]) for n in np.flatnonzero(self.mentions)]
            cursor.executemany(
                "INSERT INTO memory_links (memory_id, identity_id) VALUES (%s, %s)", links
            )
        self.ids = np.array(ids)

    def _row(self, n: int) -> tuple[object, ...]:
        clip, start, until = int(self.clip[n]), int(self.start_ms[n]), int(self.until[n])
        said = (str(self.speaker[n]) or None, None if until == 10**6 else until)
        vector = str(self.vectors[n].tolist())
        line = ("episodic", f"line number{n} of clip{clip}", start, start + 1500, "said", *said)
        return (self.videos[self.video[n]], clip, *line, vector)

    def in_view(self, scopes: Sequence[Scope]) -> NDArray[np.bool_]:
        """Which lines are in view, whose last clips are by the scope of each video."""
        lasts = {one.video: one.last_clip for one in scopes}
        last = np.array([lasts.get(video, -1) for video in self.videos])[self.video]
        return np.asarray((self.clip <= last) & (self.until > last))

    def nearest(
        self, wanted: NDArray[np.bool_], vector: NDArray[np.float32], limit: int
    ) -> list[tuple[int, int]]:
        """The (video, clip) pairs whose closest line among those ``wanted`` is nearest."""
        distance = np.where(wanted, 1 - self.vectors @ vector, np.inf)
        cells = np.minimum.reduceat(distance, np.arange(0, len(distance), LINES))
        order = np.argsort(cells, kind="stable")[:limit]
        return [divmod(int(one), CLIPS) for one in order if np.isfinite(cells[one])]


@pytest.fixture(scope="module")
def store_and_library(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[tuple[Store, Library]]:
    """A library that no test changes, but for its HNSW index."""
    with open_store(Home(tmp_path_factory.mktemp("library")), make_database()) as store:
        yield store, Library(store)


def scopes_of(library: Library, *lasts: int) -> list[Scope]:
    return [scope(last, v) for v, last in zip(library.videos, lasts, strict=False)]


RESTRICTED: dict[str, tuple[Restriction, Callable[[Library], NDArray[np.bool_]]]] = {
    "nothing": (EVERYTHING, lambda own: own.clip >= 0),
    "a span": (
        Restriction(span_ms=(300_000, 420_000)),
        lambda own: (own.start_ms + 1500 > 300_000) & (own.start_ms < 420_000),
    ),
    "a speaker": (Restriction(speaker="Ann"), lambda own: own.speaker == "Ann"),
    "a person": (Restriction(identities=()), lambda own: own.mentions),
}


@pytest.mark.parametrize("restricted", RESTRICTED)
@pytest.mark.parametrize("lasts", [(59,), (20,), (59, 59, 59, 59, 59), (30, 10, 59)])
def test_exact_search_is_the_matrix_product(
    store_and_library: tuple[Store, Library], restricted: str, lasts: tuple[int, ...]
) -> None:
    store, library = store_and_library
    restriction, wanted = RESTRICTED[restricted]
    if restricted == "a person":
        restriction = Restriction(identities=library.people)
    scopes = scopes_of(library, *lasts)
    queries = library.vectors[[7, 700]]
    found = read(store, lambda db: near_clips(db, scopes, queries, 10, restriction))
    seen = library.in_view(scopes) & wanted(library)
    for number, query in enumerate(queries):
        own = [one for one in found if one.query == number]
        slow = library.nearest(seen, query, 10)
        own.sort(key=lambda one: one.distance)
        assert {(one.video, one.clip) for one in own} == set(slow)
        assert [one.distance for one in own] == pytest.approx(
            sorted(distances(library, seen, query, slow)), abs=2e-3
        )


def distances(
    library: Library,
    seen: NDArray[np.bool_],
    query: NDArray[np.float32],
    clips: list[tuple[int, int]],
) -> list[float]:
    cosines = np.where(seen, library.vectors @ query, -np.inf)
    return [1 - float(cosines[(library.video == v) & (library.clip == c)].max()) for v, c in clips]


@pytest.fixture
def indexed(store_and_library: tuple[Store, Library]) -> Iterator[tuple[Store, Library]]:
    """The same with an HNSW index, which is gone afterwards."""
    store, library = store_and_library
    with psycopg.connect(store.psycopg_url, autocommit=True) as connection:
        connection.execute(index_statement(SIZE))
        yield store, library
        connection.execute(f"DROP INDEX {vector_index.index_name(SIZE)}")


@pytest.mark.parametrize("lasts", [(59, 59, 59, 59, 59), (40, 59, 20, 59, 59)])
def test_index_search_stays_in_view(indexed: tuple[Store, Library], lasts: tuple[int, ...]) -> None:
    store, library = indexed
    assert read(store, lambda db: has_index(db, SIZE))
    scopes = scopes_of(library, *lasts)
    random = np.random.default_rng(8)
    chosen = random.choice(len(library.vectors), 40, replace=False)
    queries = normalise_rows(library.vectors[chosen] + 0.05 * random.normal(size=(40, SIZE)))
    seen = library.in_view(scopes)
    recalled = wanted = 0
    for query in queries.astype(np.float32):
        with store.begin() as session:
            found = near_lines(session, scopes, query, 10)
            by_index = near_clips(session, scopes, query[None], 10, by_index=True)
        lasts_by_number = {n: one.last_clip for n, one in enumerate(scopes)}
        assert all(one.clip <= lasts_by_number[one.video] for one in by_index)
        exact = np.argsort(-np.where(seen, library.vectors @ query, -np.inf), kind="stable")[:10]
        cells = {(int(library.video[n]), int(library.clip[n])) for n in exact}
        recalled += len(cells & {(one.video, one.clip) for one in by_index})
        wanted += len(cells)
        assert found[0].id == library.ids[exact[0]]
        assert {one.id for one in found} <= set(library.ids[seen].tolist())
    assert recalled >= 0.95 * wanted


# Plans


class Plans:
    """Explains every statement of a search instead of keeping its answer to itself."""

    def __init__(self, driver: psycopg.Connection[Any]) -> None:
        self._driver = driver
        self.plan = ""

    def transaction(self) -> Any:
        return self._driver.transaction()

    def cursor(self, **_: object) -> Plans:
        return self

    def __enter__(self) -> Plans:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, statement: Any, parameters: Any = (), **_: object) -> Any:
        asked = statement if isinstance(statement, str) else statement.as_string(self._driver)
        rows = self._driver.execute(f"EXPLAIN {asked}", parameters)
        self.plan += "\n".join(row[0] for row in rows) + "\n"
        return psycopg.ClientCursor(self._driver).execute("SELECT NULL WHERE false")


def plan_of(store: Store, query: Callable[[Reader], object]) -> str:
    with store.begin() as session, pytest.MonkeyPatch.context() as patch:
        plans = Plans(driver_of(session.connection()))
        for module in (candidates, clips, people_in_view, search):
            patch.setattr(module, "reading_driver", lambda _: plans)
        query(session)
    assert plans.plan
    return plans.plan


VECTOR = WordEmbedder().embed(["a dog"])
QUERIES: dict[str, tuple[Callable[[Reader, Sequence[Scope]], object], str]] = {
    "nearest clips": (lambda db, s: near_clips(db, s[:1], VECTOR, 9), "memories_"),
    "of a speaker": (
        lambda db, s: near_clips(db, s[:1], VECTOR, 9, Restriction(speaker="Ann")),
        "memories_",
    ),
    "words": (lambda db, s: clips_with_words(db, s, ["number7", "clip3"]), "memories_"),
    "words of videos": (
        lambda db, s: videos_with_words(db, s, [["number7"], ["number7", "clip3"]]),
        "memories_words",
    ),
    "lines of clips": (lambda db, s: lines_of_clips(db, s, [(0, 3), (1, 7)], SIZE), "memories_"),
    "mentions": (
        lambda db, s: lines_mentioning(db, s[:1], {s[0].video: {"<face_1>"}}, VECTOR[0], 9),
        "memor",
    ),
    "who speaks": (lambda db, s: names_of_speakers(db, s, ["Ann", "Bob"]), "memories_"),
    "speakers": (lambda db, s: speakers_in_view(db, s), "memories_of_speaker"),
    "the size of a view": (lambda db, s: view_size(db, s), "clips_pkey"),
    "lines by id": (lambda db, s: read_lines(db, [1, 2, 3]), "memories_pkey"),
}


@pytest.mark.parametrize("query", QUERIES)
def test_search_uses_an_index_always(store_and_library: tuple[Store, Library], query: str) -> None:
    store, library = store_and_library
    ask, index = QUERIES[query]
    plan = plan_of(store, lambda db: ask(db, scopes_of(library, 59, 59)))
    assert re.search(rf"Index (Only )?Scan (using|on) {index}", plan), plan
    assert "Seq Scan on memories" not in plan, plan


SMALL_TABLES: dict[str, tuple[Callable[[Reader, Sequence[Scope]], object], str]] = {
    "segments": (lambda db, s: search.segments_in_view(db, s[:1], VECTOR[0]), "segment"),
    "segment texts": (lambda db, s: search.segment_texts(db, s[:1], [1, 2]), "segment"),
    "segments by id": (lambda db, s: read_segments(db, s[:1], [1, 2]), "segment"),
    "gaps": (lambda db, s: clips.clips_after_gaps(db, s), "clips_pkey"),
    "names": (lambda db, s: videos_naming(db, s[:1], ["ada"]), "ix_character_names"),
}


@pytest.mark.parametrize("query", SMALL_TABLES)
def test_reads_of_video_use_an_index(store_and_library: tuple[Store, Library], query: str) -> None:
    """These tables are small here, so the planner is kept from reading them as a whole."""
    store, library = store_and_library
    ask, index = SMALL_TABLES[query]

    def explained(database: Reader) -> None:
        database.execute(text("SET LOCAL enable_seqscan = off"))
        ask(database, scopes_of(library, 59, 59))

    plan = plan_of(store, explained)
    assert re.search(rf"Index (Only )?Scan (using|on) {index}", plan), plan
    assert "Seq Scan" not in plan, plan


def test_a_wide_search_uses_the_vector_index(indexed: tuple[Store, Library]) -> None:
    store, library = indexed
    scopes = scopes_of(library, 59, 59, 59, 59, 59)
    plan = plan_of(store, lambda db: near_clips(db, scopes, VECTOR, 9, by_index=True))
    assert f"Index Scan using {vector_index.index_name(SIZE)}" in plan, plan
    assert "Seq Scan on memories" not in plan, plan
