"""The server process of the API: where it listens, and how it ends."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from api.app_state import QUESTIONS, ApiState
from api.application import make_app
from api.auth import AccessRules, ways_in
from api.concurrency import QuestionSlots
from api.limits import BODY_S
from auth.connections import LimitedConnection
from domain.errors import InputError, SetupError
from models.profile import load_profile
from store.database import open_store
from store.home import Home

HOST, PORT = "127.0.0.1", 8600
GRACE_S = 10.0
"""How long questions may take to end with the best answer so far, once the server is to stop."""


@dataclass(frozen=True)
class Serving:
    """What to serve, where, and for whom.

    ``folders`` are those from which videos may be added; ``questions`` are searched at a time; a
    request's body may take ``body_s`` seconds to come.
    """

    host: str = HOST
    port: int = PORT
    folders: tuple[Path, ...] = ()
    questions: int = QUESTIONS
    profile: str | None = None
    body_s: float = BODY_S


def serve(home: Home, serving: Serving, said: Callable[[str], None]) -> None:
    """Serves until the process is told to stop; ``said`` is given the address.

    Raises:
        SetupError: others could reach it and there is no key, the port is taken, or the database
            cannot be opened.
        InputError: a folder or the profile is not there.
        KeyboardInterrupt: it was stopped; questions that were searched are kept as far as they got.
        Unfinished: so it was, and the process would wait for its threads.
    """
    ways = ways_in(serving.host)
    folders = _folders(serving.folders)
    profile = load_profile(serving.profile, home.config).name
    with listening(serving.host, serving.port) as listener, open_store(home) as store:
        desk = ApiState(store, profile, folders=folders, questions=QuestionSlots(serving.questions))
        said(address_of(listener))
        server = _Server(_config(desk, ways, serving.body_s), desk.questions)
        _run(server, desk, listener)


class Unfinished(KeyboardInterrupt):
    """It is to stop, and a silent model holds a question: only the end of the process ends that."""


def _run(server: uvicorn.Server, desk: ApiState, listener: socket.socket) -> None:
    try:
        server.run([listener])
    finally:
        if desk.questions.taken:
            raise Unfinished
        desk.close()


def _config(desk: ApiState, ways: AccessRules, body_s: float) -> uvicorn.Config:
    """Nothing of requests is logged, and nothing said of what answers them."""
    return uvicorn.Config(
        make_app(desk, ways, body_s),
        http=LimitedConnection,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=int(GRACE_S),
    )


class _Server(uvicorn.Server):
    """Ends questions before connections, so that their clients are told."""

    def __init__(self, config: uvicorn.Config, room: QuestionSlots) -> None:
        super().__init__(config)
        self._room = room

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops what is searched at the next word, and waits until that is on record."""
        self._room.closing.set()
        await super().shutdown(sockets)
        await self._room.empty(GRACE_S)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        SetupError: the address is not this machine's, or the port is taken.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise SetupError(
            f"the API cannot listen on {host}, port {port} ({error}): choose another with --port "
            "or --address; --port 0 takes any free one"
        ) from error


def address_of(listener: socket.socket) -> str:
    """Where a socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _folders(given: Sequence[Path]) -> tuple[Path, ...]:
    found = tuple(path.expanduser().absolute() for path in given)
    for path in found:
        if not path.is_dir():
            raise InputError(f"--videos {path}: there is no such folder")
    return found
