"""What a flow is given in the process of a command stays in that process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from flows.evaluate import evaluate, learn
from flows.ingest import ingest_open_video
from flows.prefect_executor import InProcess
from flows.stream.live import watch_clips

SECRET = "a-key-that-stays-here"


class Opened:
    """An open object with a secret, which cannot be pickled."""

    def __init__(self) -> None:
        self.key, self.close = SECRET, lambda: None


def test_a_flow_uses_the_very_object_that_it_is_given() -> None:
    opened = Opened()
    assert InProcess(opened).get() is opened


@pytest.mark.parametrize(
    ("flow", "record"),
    [
        (ingest_open_video, {"video": "ab"}),
        (watch_clips, {"video": "ab", "first_clip": 3}),
        (evaluate, {"name": "nightly"}),
        (learn, {"batch": 1}),
    ],
)
def test_server_is_reported_id_and_nothing_of_the_object(flow: Any, record: dict[str, Any]) -> None:
    output = flow.serialize_parameters({**record, "opened": InProcess(Opened())})
    assert output == {**record, "opened": "<InProcess>"}


def test_a_copy_in_another_process_is_empty() -> None:
    pickled = pickle.dumps(InProcess(Opened()))
    assert SECRET.encode() not in pickled
    with pytest.raises(RuntimeError, match="in the process of the command"):
        pickle.loads(pickled).get()  # noqa: S301 - pickled right here
