"""Work that is broken off at a named point in a process of its own, and taken up again.

A scenario prepares a library, does its work (again and again without harm), and tells what came of
it in a way that two runs can be compared by.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import psutil
import psycopg
from sqlalchemy import update

from domain import faults
from domain.asking import Question
from domain.errors import HomerError, InputError, NotFound
from domain.faults import FaultPoint as P
from domain.settings import MemorySettings, Settings, WatchSettings, WorkSettings
from domain.trajectory import canonical_event
from flows import executors
from flows.build import build
from flows.executors import direct_executor
from flows.ingest_video import open_video
from flows.perception_workers import WorkerPool
from flows.removal import delete_video_rows
from flows.watching import SilentListener, watch
from flows.workspace import Workspace
from graphs.runner import Runner
from library.removal import export_video
from library.videos import all_videos
from models.profile import Profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from retrieval.terms import content_words
from skills.learn import learn
from skills.library import list_skills
from skills.writer import LocalSkillWriter
from store.backup import back_up, check_archive, require_empty_library, restore_backup
from store.database import Store, open_store
from store.export import import_exported_video
from store.home import Home
from store.queries.trajectories import calls_of, events_of, list_trajectories
from store.tables.schema import BlobRow, KeyframeRow, VideoRow
from strategies.registry import all_strategies
from tests.support import full_video, machine, span_deletion
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.changed_encoders import change_all
from tests.support.forked_processes import forked
from tests.support.judged_answers import answered
from tests.support.library import FULL, OTHER, Quiet, all_dumps, all_images
from tests.support.media import make_video
from tests.support.memory import VIDEO, LongerVectors
from tests.support.obedient_model import obedient, texts_of
from tests.support.openai_server import Answer
from tests.support.remembered import Said
from tests.support.remembered import watch as remember
from tests.support.tiny_image_encoder import Doubled, painted_jpeg

GATE = Question(text="Who opens the gate?", videos=(PARTY,), options=("Bob", "Ann", "a dog"))
NEW_CLIPS = re.compile(r"New clips: ([\d, ]+)")
FULL_DISK = "full disk"
KILL, KILL_POSTGRES, DROP = "kill -9", "kill -9 of Postgres", "lost connection"
ENDED, TOLD, FELL = 0, 3, 70
"""How a process may end: well, with an error that says what to do, or with a fault."""


class Unseeing:
    """Models that find nobody, no text and no thing on an image."""

    name, same_person, min_score, min_quality = "none", 0.5, 0.5, 0.0

    def faces(self, image: object) -> list[Any]:
        return []

    def read(self, image: object) -> list[Any]:
        return []


class ChaosToolbox(WordToolbox):
    """Needs no weights; its writer and its reasoner are the model behind ``base_url``."""

    def __init__(self, base_url: str, timeout_s: float) -> None:
        chat = ChatSpec(model="openai:test", base_url=base_url, retries=0, timeout_s=timeout_s)
        settings = Settings(
            watch=WatchSettings(clip_ms=2000, sample_fps=2.0, keyframes=1),
            memory=MemorySettings(patch_every=2),
        )
        profile = Profile(
            name="scripted",
            writer="llm",
            reasoner="llm",
            objects="none",
            sounds="none",
            chat={"default": chat},
            settings=settings,
        )
        Toolbox.__init__(self, profile, Path("/nonexistent"))

    @property
    def faces(self) -> Any:
        return Unseeing()

    @property
    def screen(self) -> Any:
        return Unseeing()


def writing(request: dict[str, Any]) -> Any:
    """Writes the memory of clips and patches; whatever else is asked goes to the reasoner."""
    form = request.get("response_format", {}).get("json_schema", {}).get("schema", {})
    if len(request["messages"]) == 1:
        return Answer("ok")  # The least request: whether the server is out.
    output = texts_of(request)[1]
    # Of the clip or window only: not of complaints that are added where a reply was odd.
    number = hashlib.sha256(output[:100].encode()).hexdigest()[:6]
    if "lines" in form.get("properties", {}):
        text = f"A white bar moves over the board of squares number {number}."
        return {"lines": [{"kind": "episodic", "text": text}]}
    if "segments" in form.get("properties", {}):
        clips = [int(one) for one in NEW_CLIPS.findall(output)[0].split(",")]
        label = f"squares {number}"
        return {"segments": [{"label": label, "summary": "A bar moves.", "clips": clips}]}
    return obedient(request)


class Scenario:
    """Work on a library. ``points`` are those that it passes."""

    name: str
    points: tuple[P, ...]

    def prepare(self, store: Store) -> None:
        """What is there before."""

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        """The work; done again, it goes on or does nothing."""
        raise NotImplementedError

    def outcome(self, store: Store) -> Any:
        """What came of it, to be compared."""
        return all_dumps(store), all_images(store)

    def gist(self, outcome: Any, left: Set[str]) -> Any:
        """What must be equal even where the model was asked more often; not rows of ``left``."""
        dumps, images = outcome
        rows = {video: [json.loads(line) for line in lines] for video, lines in dumps.items()}
        without = {"model_call", *left}
        kept = {v: [one for one in d if one["row"] not in without] for v, d in rows.items()}
        return kept, images


class Watch(Scenario):
    """A video of three clips, with a patch after two of them."""

    name = "watch"
    points = (
        P.DECODED, P.PERCEIVED, P.CALL_SENDING, P.CALL_ANSWERED, P.CALL_RECORDED, P.CLIP_ROWS,
        P.BLOB_WRITING, P.BLOB_WRITTEN, P.CLIP_COMMITTING, P.CLIP_COMMITTED, P.PATCH_ROWS,
        P.PATCH_COMMITTED, P.VIDEO_DONE,
    )  # fmt: skip

    def prepare(self, store: Store) -> None:
        make_video(store.home.root / "little.mp4", seconds=5.0, audio=None)

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        box = ChaosToolbox(base_url, timeout_s)
        workspace = Workspace(store.home, store, box.profile, box)
        with (
            open_video(workspace, store.home.root / "little.mp4") as opened,
            direct_executor() as executor,
        ):
            watch(opened, executor, WorkerPool(WorkSettings()), SilentListener())

    def outcome(self, store: Store) -> Any:
        states = [(one.state, one.clips, one.done) for one in all_videos(store).items]
        return super().outcome(store), states

    def gist(self, outcome: Any, left: Set[str]) -> Any:
        return super().gist(outcome[0], left), outcome[1]


class Ask(Scenario):
    """A question to a language model, gone on with where it was broken off."""

    name = "ask"
    points = (
        P.QUESTION_ADDED, P.CALL_SENDING, P.CALL_ANSWERED, P.CALL_RECORDED, P.SEARCHED,
        P.EVENTS_WRITING, P.EVENTS_WRITTEN, P.ANSWER_WRITING, P.ANSWER_WRITTEN,
    )  # fmt: skip

    def prepare(self, store: Store) -> None:
        remember_party(store)

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        with store.begin() as session:
            begun = list_trajectories(session)
        with Runner(store, ChaosToolbox(base_url, timeout_s)) as runner:
            runner.resume(begun[0].id) if begun else runner.ask(GATE)

    def outcome(self, store: Store) -> Any:
        with store.begin() as session:
            (one,) = list_trajectories(session)
            events = [canonical_event(event) for event in events_of(session, one.id)]
            paid = [call.request_hash for call in calls_of(session, one.id) if call.error is None]
        assert len(paid) == len(set(paid))
        return super().outcome(store), one.state, one.answer, events

    def gist(self, outcome: Any, left: Set[str]) -> Any:
        answer = outcome[2]
        return super().gist(outcome[0], left), outcome[1], answer.option, answer.citations


class Learn(Scenario):
    """Twenty judged answers, of which a skill is made."""

    name = "learn"
    points = (P.OBSERVED, P.SKILL_WRITTEN, P.BANNED)

    def prepare(self, store: Store) -> None:
        machine.watched(store)
        for number in range(20):
            answered(store, f"w{number:02}", "who", right=True, rounds=1)

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        learn(store, LocalSkillWriter(), content_words)

    def outcome(self, store: Store) -> Any:
        skills = [(one.skill, one.banned) for one in list_skills(store)]
        assert skills != []
        return skills, super().outcome(store)


class Backup(Scenario):
    """The whole library into a file."""

    name = "back up"
    points = (P.BACKUP_ROWS, P.BACKUP_IMAGES, P.BACKUP_PLACING)

    def prepare(self, store: Store) -> None:
        full_video.fill(store, FULL)

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        out = store.home.root / "library.homer"
        if not out.exists():
            back_up(store, out, Quiet())

    def outcome(self, store: Store) -> Any:
        left = sorted(path.name for path in store.home.root.glob("*library*"))
        output = check_archive(store.home.root / "library.homer", Quiet())
        parts = [(one.table, one.rows) for one in output.tables]
        return super().outcome(store), left, parts, output.blobs, output.missing


def emptied(store: Store, make: Callable[[], object]) -> None:
    """Makes something of a video in this library, and leaves it without the video."""
    full_video.fill(store, FULL)
    make()
    delete_video_rows(store, FULL)


class Restore(Scenario):
    """An empty library, filled from a file."""

    name = "restore"
    points = (P.BLOB_WRITING, P.BLOB_WRITTEN, P.RESTORED_ROWS, P.RESTORED_IMAGES, P.RESTORED)

    def prepare(self, store: Store) -> None:
        emptied(store, lambda: back_up(store, store.home.root / "b", Quiet()))

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        with suppress(InputError):
            require_empty_library(store)
            restore_backup(store, store.home.root / "b", Quiet())


class Import(Scenario):
    """A video taken over from an export, beside another."""

    name = "import"
    points = (P.BLOB_WRITING, P.BLOB_WRITTEN, P.IMPORTED_IMAGES, P.IMPORTED_ROWS, P.IMPORTED)

    def prepare(self, store: Store) -> None:
        emptied(store, lambda: export_video(store, FULL, store.home.root / "v.zip"))
        full_video.fill(store, OTHER, "other")

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        if FULL not in {one.id for one in all_videos(store).items}:
            import_exported_video(store, store.home.root / "v.zip", Quiet())


class Delete(Scenario):
    """One of two videos that share an image."""

    name = "delete"
    points = (P.DELETED_ROWS, P.DELETED, P.BLOB_REMOVED)

    def prepare(self, store: Store) -> None:
        full_video.fill(store, FULL, "full")
        full_video.fill(store, OTHER, "other")
        full_video.ask(store, "0" * 16, "why?", FULL)

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        with suppress(NotFound):
            delete_video_rows(store, FULL)

    def outcome(self, store: Store) -> Any:
        with store.begin() as session:
            return super().outcome(store), [one.id for one in list_trajectories(session)]


class DeleteSpan(Scenario):
    """A span of a talk, with its images and the answer that was shown it."""

    name = "delete a span"
    points = (P.CUT_ROWS, P.CUT, P.BLOB_REMOVED)

    def prepare(self, store: Store) -> None:
        span_deletion.watch_talk(store)
        full_video.ask(store, "0" * 16, "Where is the marmalade?", VIDEO)

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        span_deletion.cut(store)

    def outcome(self, store: Store) -> Any:
        with store.begin() as session:
            return super().outcome(store), [one.id for one in list_trajectories(session)]


class Reembed(Scenario):
    """All vectors of a talk become those of other encoders, of texts and of pictures."""

    name = "reembed"
    points = (P.REEMBEDDED_BATCH, P.REEMBEDDED)

    def prepare(self, store: Store) -> None:
        span_deletion.watch_talk(store)
        image = store.blobs.put(painted_jpeg("red"))
        with store.begin() as session:
            session.execute(update(KeyframeRow).values(blob=image))
            session.add(BlobRow(video_id=VIDEO, sha256=image, size=1))

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        change_all(store, LongerVectors(), images=False)
        assert change_all(store, Doubled(), images=True) == set()


class BuildMemory(Scenario):
    """The memory of a strategy, of captions of half an hour."""

    name = "build"
    points = (P.BUILD_ROWS, P.BUILD_COMMITTED)

    def prepare(self, store: Store) -> None:
        said = [[Said(f"Ann puts cup {clip} on the table", 3)] for clip in range(60)]
        remember(store, VIDEO, said)
        with store.begin() as session:
            session.execute(update(VideoRow).values(state="done"))

    def work(self, store: Store, base_url: str, timeout_s: float = 20.0) -> None:
        tools = WordToolbox()
        workspace = Workspace(store.home, store, tools.profile, tools)
        for strategy in all_strategies():
            if strategy.builder is not None:
                build(workspace, VIDEO, strategy, lambda *_: None)


SCENARIOS: dict[str, Scenario] = {
    one.name: one
    for one in (
        Watch(),
        Ask(),
        Learn(),
        Backup(),
        Restore(),
        Import(),
        Delete(),
        DeleteSpan(),
        Reembed(),
        BuildMemory(),
    )
}


def broken_off(
    scenario: str, url: str, root: Path, base_url: str, fault: str, point: P, at: int
) -> int:
    """Do the work in a process to which ``fault`` happens as it passes ``point`` once more.

    Returns:
        Its exit code: -9 where it was killed; else ``ENDED`` or ``TOLD``.
    """
    child = forked(_broken_off, scenario, url, root, base_url, fault, point, at)
    child.join(120)
    code = child.exitcode
    if code is None:
        child.kill()
    assert code is not None, "the process hangs"
    return code


def _broken_off(
    scenario: str, url: str, root: Path, base_url: str, fault: str, point: P, at: int
) -> NoReturn:
    executors.BACK_OFF_S = (0.01, 0.01, 0.01)
    code = ENDED
    try:
        with open_store(Home(root), url) as store:
            passed = 0

            def happen(reached: P) -> None:
                nonlocal passed
                passed += reached is point
                if reached is point and passed == at:
                    FAULTS[fault](url)

            faults.fault_point = happen  # type: ignore[assignment]
            SCENARIOS[scenario].work(store, base_url)
    except HomerError as error:
        sys.stderr.write(f"told: {error}\n")
        code = TOLD
    except BaseException:  # noqa: BLE001 - the edge of the process
        traceback.print_exc()
        code = FELL
    os._exit(code)


def _kill(url: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_postgres(url: str) -> None:
    """Kill the server that a database belongs to, and wait until it is gone."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        server = psutil.Process(connection.info.backend_pid).parent()
    assert server is not None
    family = [server, *server.children()]
    server.kill()
    psutil.wait_procs(family, timeout=10)


def _drop(url: str) -> None:
    query = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(query)


def _full_disk(url: str) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


FAULTS: dict[str, Callable[[str], None]] = {
    KILL: _kill,
    KILL_POSTGRES: kill_postgres,
    DROP: _drop,
    FULL_DISK: _full_disk,
}
