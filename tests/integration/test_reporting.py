"""What happens to a process whose Prefect server is gone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

ENDS = """
import sys, threading
from pathlib import Path
from websockets.sync.server import serve
from flows import reporting
from store.home import Home

def one_event(connection):
    connection.recv()
    connection.send('{"type": "auth_success"}')
    connection.recv()
    threading.Thread(target=server.shutdown).start()

server = serve(one_event, "127.0.0.1", 0)
port = server.socket.getsockname()[1]
threading.Thread(target=server.serve_forever).start()
reporting.SENT_WITHIN_S = 1.0
with reporting.report_to_prefect(Home(Path(sys.argv[1])), f"http://127.0.0.1:{port}/api"):
    from prefect.events import emit_event
    for number in range(20):
        emit_event(f"test.{number}", {"prefect.resource.id": f"test.{number}"})
print("ended")
"""


@pytest.mark.full
def test_a_server_that_is_gone_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """Left to itself Prefect tries each of the twenty events for seven seconds."""
    began = time.monotonic()
    script = [sys.executable, "-c", ENDS, str(tmp_path)]
    ran = subprocess.run(script, capture_output=True, text=True, timeout=200, check=True)
    assert ran.stdout == "ended\n"
    assert time.monotonic() - began < 60
