"""Alerts: each remembered clip is judged once, and each event is delivered at least once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from domain.alerts import DeliveryState
from domain.errors import InputError, ModelError, NotDelivered, NotFound
from domain.time import TimeSpan
from flows.alert_delivery import alerts_beside, deliver, remove_delivery
from flows.alert_judging import ATTEMPTS, AlertJudge
from flows.executors import Executor, Step, call_with_retries
from flows.removal import delete_video, delete_video_span
from flows.schedules import work
from flows.workspace import Workspace
from library import alerts
from people.across_videos import rename
from people.forget import forget
from store.database import Store
from store.queries.alerts import add_alert
from store.queries.videos import find_video
from tests.support.alerted import (
    LADDER,
    clip_with,
    hits,
    judged,
    ladder,
    text_alert,
    watch,
    workspace_of,
)
from tests.support.local_servers import serving
from tests.support.memory import VIDEO, WordVectors, face, known_video, percept


class OddEmbedder(WordVectors):
    """Fails as a server of a model may."""

    def embed(self, texts: Any) -> Any:
        raise ConnectionError("gone")


class Failing(WordVectors):
    """Does not answer where a text has a word; ``asked`` are the texts."""

    def __init__(self, word: str = "") -> None:
        self.word, self.asked = word, list[list[str]]()

    def embed(self, texts: Any) -> Any:
        self.asked.append(list(texts))
        if any(self.word in one for one in texts):
            raise ModelError("the model did not answer: connection refused")
        return super().embed(texts)


@pytest.fixture
def workspace(store: Store) -> Workspace:
    known_video(store, 8)
    return workspace_of(store, private_hosts=("127.0.0.1",))


def test_a_clip_that_answers_is_an_event_with_its_line_and_time(workspace: Workspace) -> None:
    text_alert(workspace)
    watch(workspace.store, clip_with(0, "The weather is fine."), ladder(1))
    assert judged(workspace) == 1
    (one,) = hits(workspace)
    assert (one.clip, one.span.start_ms) == (1, 32_000)
    assert "carries a ladder" in one.text
    assert one.state is DeliveryState.RECORDED
    assert judged(workspace) == 0, "a clip is judged once"


def test_clips_of_before_the_alert_are_not_judged(workspace: Workspace) -> None:
    watch(workspace.store, ladder(0))
    text_alert(workspace)
    assert judged(workspace) == 0
    assert [hit.score > 0.7 for hit in alerts.try_alert(workspace, "ladder")] == [True]
    assert hits(workspace) == [], "trying an alert out records nothing"


def test_there_is_no_second_event_within_the_debounce_time(workspace: Workspace) -> None:
    text_alert(workspace, debounce=45)
    watch(workspace.store, *map(ladder, range(5)))
    judged(workspace)
    assert [one.clip for one in hits(workspace)] == [0, 2, 4]


def test_an_alert_of_another_video_is_not_judged(workspace: Workspace) -> None:
    known_video(workspace.store, 1, "f" * 16)
    text_alert(workspace, video="f" * 16)
    watch(workspace.store, ladder(0))
    assert judged(workspace) == 0


def test_a_named_face_and_an_unknown_one(workspace: Workspace) -> None:
    watch(workspace.store, percept(0, faces=(face(0, 1, (2, 5)),)))
    rename(workspace.store, VIDEO, "0", "Anna Berg")
    alerts.add_alert(workspace, "anna", person="anna berg")
    alerts.add_alert(workspace, "stranger", unknown_face=True, debounce=600)
    watch(
        workspace.store,
        percept(1, faces=(face(0, 1, (33, 35)),)),
        percept(2, faces=(face(0, 7, (63, 65)),)),
        percept(3, faces=(face(0, 7, (93, 95)), face(1, 9, (96, 99)))),
    )
    judged(workspace)
    found = [(one.alert, one.clip, one.text) for one in hits(workspace)]
    assert found[0] == ("anna", 1, "Anna Berg was seen")
    assert [(name, clip) for name, clip, _ in found[1:]] == [("stranger", 2), ("stranger", 3)]


def test_clips_wait_as_long_as_the_model_is_away_and_none_is_given_up(workspace: Workspace) -> None:
    text_alert(workspace, debounce=0)
    watch(workspace.store, ladder(0), ladder(1))
    model = Failing()
    for _ in range(ATTEMPTS + 3):
        assert AlertJudge(workspace_of(workspace.store, model)).judge_waiting() == ([], 2)
    assert len(model.asked) == 2 * (ATTEMPTS + 3), "it is not asked for every clip that waits"
    assert work.alerts(workspace_of(workspace.store, model), DIRECT).text == (
        "0 hits recorded, 0 delivered; the text model does not answer: 2 clips not judged"
    )
    assert judged(workspace) == 2


def test_a_clip_the_model_fails_with_is_given_up_and_holds_up_none(workspace: Workspace) -> None:
    text_alert(workspace, debounce=0)
    watch(workspace.store, clip_with(0, "An odd ladder is carried."), ladder(1))
    odd = workspace_of(workspace.store, Failing("odd"))
    with workspace.store.begin() as session:  # so that lines are embedded by this model
        session.execute(text("UPDATE memories SET embedding = NULL"))
    assert [judged(odd) for _ in range(ATTEMPTS + 1)] == [1] + ATTEMPTS * [0]
    assert judged(workspace) == 0


def test_a_clip_is_judged_after_a_kill_between_its_commit_and_its_judgement(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    text_alert(workspace)
    watch(workspace.store, ladder(0))
    with monkeypatch.context() as patch:
        patch.setattr("flows.alert_judging.add_hits", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            judged(workspace)
    assert (judged(workspace), len(hits(workspace))) == (1, 1)


def _interrupted(*_: object) -> bool:
    raise KeyboardInterrupt


def test_events_are_seen_as_of_a_time(workspace: Workspace) -> None:
    text_alert(workspace, debounce=0)
    watch(workspace.store, *map(ladder, range(4)))
    judged(workspace)
    assert [one.clip for one in hits(workspace, video=VIDEO, as_of=60_000)] == [0, 1]


def test_deletions_and_forgetting_take_events_along(workspace: Workspace) -> None:
    store = workspace.store
    text_alert(workspace, debounce=0)
    alerts.add_alert(workspace, "anna", person="anna", debounce=0)
    text_alert(workspace, "of-this", video=VIDEO)
    watch(store, percept(0, faces=(face(0, 1, (2, 5)),)))
    rename(store, VIDEO, "0", "Anna")
    watch(store, percept(1, faces=(face(0, 1, (33, 35)),)), ladder(2), ladder(4), ladder(6))
    judged(workspace)
    found = {(one.alert, one.clip) for one in hits(workspace)}
    assert found >= {("anna", 1), ("ladder", 2), ("ladder", 4), ("ladder", 6)}
    with store.begin() as session:
        video = find_video(session, VIDEO)
    delete_video_span(workspace, video, TimeSpan.of(60_000, 61_000))
    assert 2 not in {one.clip for one in hits(workspace)}
    assert forget(store, VIDEO, "Anna", WordVectors()).alerts == 1
    assert {one.name for one in alerts.alerts(store)} == {"ladder", "of-this"}
    delete_video(store, VIDEO)
    assert hits(workspace) == []
    assert [one.name for one in alerts.alerts(store)] == ["ladder"]


# Delivery


class Received:
    """What a webhook received, and how it answers."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        self.location: str | None = None
        self.body = b""


@contextmanager
def webhook(received: Received) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.requests.append(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(received.status)
            if received.location:
                self.send_header("Location", received.location)
            self.end_headers()
            self.wfile.write(received.body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with serving(Handler) as port:
        yield f"http://127.0.0.1:{port}/hook?key=1"


def never(_step: Step, _arguments: object) -> Any:
    raise AssertionError("deliveries have threads of their own")


DIRECT = Executor(call_with_retries, never)


def sent(workspace: Workspace, alert: Any) -> int:
    """Deliver what waits of an alert once; return how many hits were delivered."""
    try:
        return deliver(workspace, alert.id)
    except NotDelivered:
        return 0


def test_a_webhook_is_signed_and_names_the_hit(workspace: Workspace, tmp_path: Path) -> None:
    received = Received()
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    with webhook(received) as url:
        alert = text_alert(workspace, webhook=url, secret_file=secret)
        watch(workspace.store, ladder(0))
        judged(workspace)
        assert [sent(workspace, alert), sent(workspace, alert)] == [1, 0]
    ((headers, body),) = received.requests
    told = json.loads(body)
    (one,) = hits(workspace)
    assert one.state is DeliveryState.DELIVERED
    assert told["id"] == headers["webhook-id"] == one.id
    assert (told["alert"], told["start_s"], told["video"]) == ("ladder", 2.0, VIDEO)
    signed = f"{one.id}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(b"hush", signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_a_refused_hit_is_tried_under_one_id_and_given_up_a_day_later(workspace: Workspace) -> None:
    received = Received()
    received.status = 500
    with webhook(received) as url:
        alert = text_alert(workspace, webhook=url, debounce=0)
        watch(workspace.store, ladder(0), ladder(2))
        judged(workspace)
        assert sent(workspace, alert) == 0
        assert len(received.requests) == 1, "the others of the alert wait as well"
        assert hits(workspace)[0].error == "the webhook answered with status 500"
        sent(workspace, alert)
        ids = [headers["webhook-id"] for headers, _ in received.requests]
        assert ids[0] == ids[1]
        with workspace.store.begin() as session:
            session.execute(text("UPDATE alert_hits SET at = at - interval '2 days'"))
        sent(workspace, alert)
    assert {one.state for one in hits(workspace)} == {DeliveryState.FAILED}
    assert len({headers["webhook-id"] for headers, _ in received.requests}) == 2


def test_a_schedule_judges_alone(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.executors.BACK_OFF_S", (0.0,))
    received = Received()
    received.status = 503
    with webhook(received) as url:
        text_alert(workspace, webhook=url)
        watch(workspace.store, ladder(0))
        report = work.alerts(workspace, DIRECT)
        assert report.text == "1 hit recorded, 0 delivered, 1 to be tried again"
        assert len(received.requests) == 2, "a step of a flow is retried"
        received.status = 200
        assert work.alerts(workspace, DIRECT).text == "0 hits recorded, 1 delivered"
    assert {one.state for one in hits(workspace)} == {DeliveryState.DELIVERED}


def test_a_hit_is_sent_by_one_process_at_a_time_and_again_if_that_is_killed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    received, elsewhere = Received(), list[int]()
    with webhook(received) as url:
        alert = text_alert(workspace, webhook=url)
        watch(workspace.store, ladder(0))
        judged(workspace)

        def killed(*_: object) -> None:
            elsewhere.append(deliver(workspace, alert.id))
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("flows.alert_delivery.settle_hit", killed)
            with pytest.raises(KeyboardInterrupt):
                deliver(workspace, alert.id)
        assert elsewhere == [0], "another process leaves it to this one"
        assert sent(workspace, alert) == 1
    first, second = (headers["webhook-id"] for headers, _ in received.requests)
    assert first == second


def test_a_redirect_is_not_followed(workspace: Workspace) -> None:
    received, elsewhere = Received(), Received()
    with webhook(received) as url, webhook(elsewhere) as other:
        received.status, received.location = 307, other
        alert = text_alert(workspace, webhook=url)
        watch(workspace.store, ladder(0))
        judged(workspace)
        assert sent(workspace, alert) == 0
    assert len(received.requests) == 1
    assert elsewhere.requests == []


PRIVATE = ("127.0.0.1", "localhost", "10.1.2.3", "169.254.169.254", "[::1]", "[fe80::1]", "0.0.0.0")


@pytest.mark.parametrize(
    "host", [*PRIVATE, "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "2130706433"]
)
def test_a_private_host_is_refused_unless_the_settings_name_it(store: Store, host: str) -> None:
    workspace = workspace_of(store)
    with pytest.raises(InputError, match="private network"):
        text_alert(workspace, webhook=f"http://{host}/hook")
    assert alerts.alerts(store) == []


def test_a_name_that_turns_private_later_is_refused_when_an_event_is_sent(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = Received()
    with webhook(received) as url:
        port = int(url.split(":")[2].split("/")[0])
        answers = {"now": ["93.184.215.14"]}

        def resolve(host: str, port: int, **_: object) -> list[Any]:
            return [(2, 1, 6, "", (address, port)) for address in answers["now"]]

        monkeypatch.setattr("socket.getaddrinfo", resolve)
        strict = workspace_of(workspace.store)
        alert = text_alert(strict, webhook=f"http://rebound.example:{port}/")
        answers["now"] = ["127.0.0.1"]
        watch(workspace.store, ladder(0))
        judged(strict)
        assert sent(strict, alert) == 0
    assert received.requests == []
    assert "private network" in (hits(workspace)[0].error or "")


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@example.org/",
        "http://me@example.org/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http:///path",
        "http://example.org/a b",
        "http://example.org/\r\nX: y",
        "http://example.org:99999/",
        "http://" + "a" * 3000,
    ],
)
def test_an_address_that_is_no_webhook_is_refused(workspace: Workspace, url: str) -> None:
    with pytest.raises(InputError):
        text_alert(workspace, webhook=url)


def test_a_slow_answer_ends_at_time_limit_and_a_huge_one_is_not_read(workspace: Workspace) -> None:
    stop = threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not stop.wait(0.05):
                try:
                    self.wfile.write(b"X: y\r\n"[:1])
                except OSError:
                    return

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    quick = workspace_of(workspace.store, private_hosts=("127.0.0.1",), webhook_s=0.5)
    with serving(Slow) as port:
        alert = text_alert(quick, webhook=f"http://127.0.0.1:{port}/")
        watch(workspace.store, ladder(0))
        judged(quick)
        began = time.monotonic()
        assert sent(quick, alert) == 0
        assert time.monotonic() - began < 3
        stop.set()
    received = Received()
    received.body = b"x" * 50_000_000
    with webhook(received) as url:
        huge = text_alert(quick, "huge", webhook=url)
        watch(workspace.store, ladder(4))
        judged(quick)
        began = time.monotonic()
        assert sent(quick, huge) == 1
        assert time.monotonic() - began < 2


def test_a_command_gets_the_event_as_json_and_none_of_homers_environment(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", "postgresql://me:secret@host/db")
    out, script = tmp_path / "got; touch pwned", tmp_path / "got.py"
    script.write_text(
        "import json, os, sys\n"
        "told = json.load(sys.stdin)\n"
        "told['environment'] = dict(os.environ)\n"
        "open(sys.argv[1], 'w').write(json.dumps(told))\n"
    )
    alert = text_alert(workspace, command=f"{sys.executable} {script} '{out}'")
    watch(workspace.store, ladder(0))
    judged(workspace)
    assert sent(workspace, alert) == 1
    told = json.loads(out.read_text())
    assert (told["alert"], told["id"]) == ("ladder", hits(workspace)[0].id)
    assert "HOMER_DATABASE_URL" not in told["environment"]
    assert not (tmp_path / "pwned").exists()


def test_a_command_that_hangs_is_ended_with_children(workspace: Workspace, tmp_path: Path) -> None:
    quick = workspace_of(workspace.store, command_s=0.5)
    late = tmp_path / "late"
    alert = text_alert(quick, command=f"sh -c '(sleep 3; touch {late}) & sleep 60'")
    watch(workspace.store, ladder(0))
    judged(quick)
    began = time.monotonic()
    assert sent(quick, alert) == 0
    assert time.monotonic() - began < 2.5
    assert "longer than 0.5 s" in (hits(quick)[0].error or "")
    time.sleep(3)
    assert not late.exists()


def test_where_events_go_is_not_in_the_database(workspace: Workspace, tmp_path: Path) -> None:
    store, url = workspace.store, "https://93.184.215.14/services/T0PSECRET"
    secret = tmp_path / "secret"
    secret.write_text("hush")
    text_alert(workspace, webhook=url, secret_file=secret)
    with store.begin() as session:
        rows = [*session.scalars(text("SELECT to_jsonb(a)::text FROM alerts a"))]
    assert "T0PSECRET" not in "".join(rows)
    assert "hush" not in "".join(rows)
    (path,) = (path for path in store.home.alerts.rglob("*.json"))
    assert path.stat().st_mode & 0o077 == 0
    alerts.remove_alert(store, "ladder")
    assert list(store.home.alerts.rglob("*.json")) == []
    with pytest.raises(NotFound):
        alerts.remove_alert(store, "ladder")


def test_an_alert_of_another_machine_is_left_to_it(workspace: Workspace) -> None:
    alert = text_alert(workspace, command="/bin/true")
    remove_delivery(workspace.store, alert.id)
    watch(workspace.store, ladder(0))
    judged(workspace)
    assert sent(workspace, alert) == 0
    assert hits(workspace)[0].state is DeliveryState.WAITING


@pytest.mark.full
def test_a_thousand_alerts_are_judged_soon_and_no_more_are_taken(workspace: Workspace) -> None:
    first = text_alert(workspace, "first")
    with workspace.store.begin() as session:
        for number in range(999):
            changes = {"id": f"a{number}", "name": f"a{number}", "question": f"{LADDER} {number}"}
            add_alert(session, first.model_copy(update=changes | {"threshold": 0.5}))
    with pytest.raises(InputError, match="1000 alerts"):
        text_alert(workspace, "more")
    watch(workspace.store, clip_with(0, "A dog sleeps. A cat walks. Rain falls."))
    judge = AlertJudge(workspace)
    judge.judge_waiting()
    watch(workspace.store, ladder(2))
    began = time.monotonic()
    assert len(judge.judge_waiting()[0]) == 1000
    assert time.monotonic() - began < 15


def test_alerts_hold_up_no_ingestion(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.alert_delivery.END_S", 1.0)
    odd = workspace_of(workspace.store, OddEmbedder())
    text_alert(odd, command="sleep 60")
    began = time.monotonic()
    with alerts_beside(odd, DIRECT) as judge:
        watch(workspace.store, ladder(0))
        judge()
    with alerts_beside(workspace, DIRECT):
        pass
    assert time.monotonic() - began < 5
    assert len(hits(workspace)) == 1, "the next ingestion judges what was left"


def test_a_hit_whose_line_was_deleted_is_gone(workspace: Workspace) -> None:
    alert = text_alert(workspace, command="/bin/true")
    watch(workspace.store, ladder(0))
    judged(workspace)
    with workspace.store.begin() as session:
        session.execute(text("DELETE FROM memories"))
    assert (sent(workspace, alert), hits(workspace)) == (0, [])
