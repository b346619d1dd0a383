"""Packages that are put off: as if they were imported at once, only later."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from models import lazy_packages

Write = Callable[[str], ModuleType]

FRONT = """
import sys
sys.front_pages += 1
from put_off_one.part import PART
from put_off_one import other
WHOLE = PART + other.OTHER
def __getattr__(name):
    if name == "made":
        return "made when asked for"
    raise AttributeError(name)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the package ``put_off_one`` with this ``__init__`` and imports a module of it."""
    names = frozenset({"put_off_one", "put_off_gone", "put_off_module"})
    monkeypatch.setattr(lazy_packages, "PACKAGES", names)
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    monkeypatch.setattr(sys, "front_pages", 0, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "put_off_one").mkdir()
    (tmp_path / "put_off_one" / "part.py").write_text("PART = 'part'")
    (tmp_path / "put_off_one" / "other.py").write_text("OTHER = 'other'")
    (tmp_path / "put_off_module.py").write_text("import sys; sys.front_pages += 1")

    def written(front: str) -> ModuleType:
        (tmp_path / "put_off_one" / "__init__.py").write_text(front)
        importlib.invalidate_caches()
        lazy_packages.defer_packages()
        importlib.import_module("put_off_one.part")
        return sys.modules["put_off_one"]

    yield written
    for name in [one for one in sys.modules if one.startswith("put_off_")]:
        del sys.modules[name]


def front_pages() -> int:
    return int(sys.front_pages)  # type: ignore[attr-defined]


def test_a_module_of_it_is_imported_without_the_rest(write: Write) -> None:
    package = write(FRONT)
    assert package.part.PART == "part"
    assert front_pages() == 0
    assert "put_off_one.other" not in sys.modules


def test_the_first_name_brings_all_of_it_once(write: Write) -> None:
    package = write(FRONT)
    assert package.WHOLE == "partother"
    assert package.other.OTHER == "other"
    assert package.made == "made when asked for"
    assert front_pages() == 1
    assert type(package) is ModuleType


def test_threads_that_turn_to_it_together_see_all_of_it(write: Write) -> None:
    package = write(f"import time; time.sleep(0.05)\n{FRONT}")
    seen: list[str] = []
    threads = [threading.Thread(target=lambda: seen.append(package.WHOLE)) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert seen == ["partother"] * 4
    assert front_pages() == 1


def test_names_are_imported_from_it_as_ever(write: Write) -> None:
    write(FRONT)
    names: dict[str, object] = {}
    exec("from put_off_one import WHOLE, other", names)  # noqa: S102 - as a library would
    assert names["WHOLE"] == "partother"
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from put_off_one import nothing", names)  # noqa: S102


def test_an_error_in_it_is_told_each_time(write: Write) -> None:
    package = write("raise OSError('broken')")
    for _ in range(2):
        with pytest.raises(OSError, match="broken"):
            _ = package.anything


def test_what_is_no_package_any_more_is_left_to_python(write: Write) -> None:
    write(FRONT)
    importlib.import_module("put_off_module")
    assert front_pages() == 1
    with pytest.raises(ModuleNotFoundError, match="put_off_gone"):
        importlib.import_module("put_off_gone.part")


def test_what_was_imported_before_stays(write: Write, tmp_path: Path) -> None:
    (tmp_path / "put_off_one" / "__init__.py").write_text(FRONT)
    before = importlib.import_module("put_off_one")
    assert write(FRONT) is before
    assert front_pages() == 1


TRACED = """
import sys
from models.lazy_packages import defer_packages
defer_packages()
import graphs.ask
whole = ("langgraph_sdk.client", "langsmith.types.run")
assert not [name for name in whole if name in sys.modules], "imported at once"

from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.langchain import wait_for_all_tracers
RunnableLambda(lambda word: word.upper(), name="shout").invoke("traced word")
wait_for_all_tracers()

from langgraph_sdk import get_client
from langsmith.types import Dataset, Run
get_client(url="http://127.0.0.1:1")
assert not [name for name in whole if name not in sys.modules]
"""


def test_traces_go_to_langsmith_where_it_is_turned_on(tmp_path: Path) -> None:
    """The real packages: asking does without them, and whoever wants them has them."""
    bodies: list[bytes] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _taking(bodies))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_API_KEY": "none",
        "LANGSMITH_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}",
    }
    try:
        subprocess.run(
            [sys.executable, "-c", TRACED],
            check=True,
            timeout=60,
            env=os.environ | environment,
            cwd=Path(__file__).parents[2],
        )
    finally:
        server.shutdown()
        server.server_close()
    assert any(b"shout" in body and b"traced word" in body for body in bodies)


def _taking(bodies: list[bytes]) -> type[BaseHTTPRequestHandler]:
    """A server that says it takes plain batches, and keeps what it is sent."""
    batches = {"use_multipart_endpoint": False, "size_limit": 100, "size_limit_bytes": 1_000_000}
    threads = {"scale_up_qsize_trigger": 1000, "scale_up_nthreads_limit": 2}
    limits = {**batches, **threads, "scale_down_nempty_trigger": 4}
    info = {"version": "0.0", "batch_ingest_config": limits}

    class Taking(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(json.dumps(info).encode())

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            self._answer(b"{}")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Taking
