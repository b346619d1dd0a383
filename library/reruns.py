"""Running a trajectory again from its record. Apart, since it imports the machine."""

from __future__ import annotations

from graphs.replay import Replayed
from graphs.replay import replay as run_replay
from library.params import Id
from store.database import Store


def replay(store: Store, id: Id) -> Replayed:  # noqa: A002 - what users type
    """Replay an answer from its record, and compare every event.

    Replies of models and results of searches are read from the record: no model is called and
    nothing is written. If an event differs, it is shown, and the exit code is 6.

    Examples:
      homer replay 3f2a
      homer replay 3f2a --json

    Raises:
        NotFound: there is no such trajectory.
        InputError: nothing was recorded.
        MachineChanged: another version of the machine made it.
    """
    return run_replay(store, id)
