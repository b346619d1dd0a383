"""What a flow is given in the process of a command stays in that process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from flows.prefect_executor import InProcess, in_process

SECRET = "a-key-that-stays-here"


class Opened:
    """An open object with a secret, which cannot be pickled."""

    def __init__(self) -> None:
        self.key, self.close = SECRET, lambda: None


def test_a_flow_uses_the_very_object_that_it_is_given() -> None:
    opened = Opened()
    assert InProcess(opened).get() is opened


def test_server_is_reported_the_name_of_a_run_and_nothing_of_the_object() -> None:
    opened: Any = InProcess(Opened())
    output = in_process.serialize_parameters({"run": "ab", "opened": opened})
    assert output == {"run": "ab", "opened": "<InProcess>"}


def test_a_copy_in_another_process_is_empty() -> None:
    pickled = pickle.dumps(InProcess(Opened()))
    assert SECRET.encode() not in pickled
    with pytest.raises(RuntimeError, match="in the process of the command"):
        pickle.loads(pickled).get()  # noqa: S301 - pickled right here
