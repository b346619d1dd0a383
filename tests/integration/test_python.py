"""The Python interface: what the documents show of it runs, and what it returns can be used."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import homer_video
from domain.errors import InputError, MediaError, NotFound
from flows.workspace import Workspace
from homer_video.library import VideoLibrary
from models.profile import load_profile
from perception.source import video_id
from store.database import Store
from store.tables.schema import VideoRow
from tests.support.asking import CLIPS, WordToolbox
from tests.support.media import make_video
from tests.support.remembered import Said, name, watch

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"
NOTEBOOK = ROOT / "docs" / "notebooks" / "ask_a_video.ipynb"
LINES: tuple[Said, ...] = sum(CLIPS, ())


@pytest.fixture
def video(store: Store, tmp_path: Path) -> Path:
    """A file that is in memory as the party, in one clip."""
    path = make_video(tmp_path / "party.mp4", seconds=1.0)
    made = video_id(path)
    watch(store, made, [LINES])
    name(store, made, 1, "Ann", "<face_1>")
    with store.begin() as session:
        row = session.get(VideoRow, made)
        assert row is not None
        row.title = "party"
    return path


@pytest.fixture
def library(store: Store, video: Path) -> Iterator[VideoLibrary]:
    del video
    profile = load_profile("local", None)
    with VideoLibrary(nullcontext(Workspace(store.home, store, profile, WordToolbox()))) as found:
        yield found


@pytest.fixture
def as_documented(
    store: Store, video: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[list[str]], dict[str, Any]]:
    """Runs pieces of code one after the other, beside the video; returns the names they leave."""

    @contextmanager
    def workspace(profile: str | None, home: object) -> Iterator[Workspace]:
        del profile, home
        yield Workspace(store.home, store, load_profile("local", None), WordToolbox())

    monkeypatch.setattr("homer_video.library.open_workspace", workspace)
    monkeypatch.chdir(video.parent)

    def run(pieces: list[str]) -> dict[str, Any]:
        names: dict[str, Any] = {}
        for piece in pieces:
            names["_"] = evaluated(piece, names)
            if hasattr(names["_"], "_repr_html_"):
                names["shown"] = names.get("shown", "") + (names["_"]._repr_html_() or "")
        return names

    return run


def evaluated(piece: str, names: dict[str, Any]) -> object:
    """Run code as a notebook does; returns the value of the last line if it is an expression."""
    tree = ast.parse(piece)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102 - code of our own documents
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307


def test_the_page_runs(
    as_documented: Callable[[list[str]], dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    names = as_documented(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    assert names["video"].title == "party"
    assert "piano" in names["table"]["text"][0]
    assert names["nodes"][0].node.text == names["documents"][0].page_content
    printed = capsys.readouterr().out
    assert "Ann opens the wooden gate" in printed
    assert "no video" in printed.lower()
    assert "holiday" in printed


def test_the_notebook_runs(as_documented: Callable[[list[str]], dict[str, Any]]) -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in cells)
    names = as_documented(code)
    assert "<b>" in names["shown"]
    assert "Ann opens the wooden gate" in names["shown"]


def test_all_that_is_exported_is_there_and_marked_as_typed() -> None:
    assert sorted(homer_video.__all__) == homer_video.__all__
    for exported in homer_video.__all__:
        assert hasattr(homer_video, exported)
    assert (Path(homer_video.__file__).parent / "py.typed").is_file()


def test_what_a_notebook_shows_is_text_not_markup(store: Store, library: VideoLibrary) -> None:
    watch(store, "b" * 16, [(Said("<script>alert(1)</script> zebra & co", 3),)])
    found = library.search("zebra", video="b" * 16)
    assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def test_an_answer_is_followed_step_by_step(library: VideoLibrary) -> None:
    *steps, last = library.ask_stream("Who opens the gate?", "party")
    assert isinstance(last, homer_video.VideoAnswer)
    kinds = [step.kind for step in steps if not isinstance(step, homer_video.VideoAnswer)]
    assert (kinds[0], kinds[-1]) == ("question", "end")
    assert last.citations[0].title == "party"


def test_ending_iteration_ends_the_search_and_stores_its_best_answer(library: VideoLibrary) -> None:
    steps = library.ask_stream("Who opens the gate?", "party")
    next(steps)
    steps.close()
    for trajectory in library.trajectories().items:
        assert trajectory.question == "Who opens the gate?"


def test_asynchronous_programs_ask_too(library: VideoLibrary) -> None:
    async def both() -> list[homer_video.VideoAnswer]:
        asked = (library.aask("Who opens the gate?"), library.aask("Who plays a slow song?"))
        return list(await asyncio.gather(*asked))

    one, other = asyncio.run(both())
    assert one.id != other.id


def test_what_cannot_be_done_raises_what_says_why(library: VideoLibrary, tmp_path: Path) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no video")
    with pytest.raises(MediaError):
        library.ingest(bad, progress=False)
    worse = tmp_path / "worse.mp4"
    worse.write_bytes(b"none either")
    with pytest.raises(ExceptionGroup) as several:
        library.ingest(bad, worse, progress=False)
    assert len(several.value.exceptions) == 2
    with pytest.raises(InputError, match="empty"):
        library.ask("  ")
    with pytest.raises(NotFound):
        library.ask("Who?", "nowhere")
    with pytest.raises(InputError, match="no video is that long"):
        library.search("gate", as_of=-1)
    with pytest.raises(InputError):
        library.watch(str(bad))
