"""Anything, in any order, by four workers that are killed all the while: nothing goes wrong.

``make storm`` rages for longer and with more seeds; the full suite has one that is soon over.
"""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import pytest

from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import migrate
from store.queries.backup import set_library_id
from tests.support.chaos import writing
from tests.support.openai_server import OpenAIServer
from tests.support.storm import Storm

SEEDS = int(os.environ.get("STORM_SEEDS", "1"))
SECONDS = float(os.environ.get("STORM_SECONDS", "30"))
SLACK_S = 120


@pytest.mark.full
@pytest.mark.timeout(SECONDS + SLACK_S)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_wrong_after_anything_in_any_order(
    seed: int, server: EmbeddedPostgres, tmp_path: Path
) -> None:
    url = server.ensure_database(f"storm_{seed}")
    migrate(url)
    home = Home(tmp_path / "home").make()
    with open_store(home, url) as store, store.begin() as session:
        set_library_id(session, uuid4().hex)
    with OpenAIServer(writing) as model:
        output = Storm(server, url, home.root, model.base_url, seed).rage(SECONDS)
    done = ", ".join(f"{name} {count}" for name, count in output.done.most_common())
    refused = ", ".join(f"{name} {count}" for name, count in output.refused.most_common())
    kills = f"{output.kills} kills, {output.restarts} of Postgres"
    print(f"seed {seed}: {done}; refused: {refused}; {kills}; {len(output.faults)} faults")
    assert not output.faults, "\n\n".join(output.faults)
    assert output.kills > 0
    assert output.done.total() > 0
