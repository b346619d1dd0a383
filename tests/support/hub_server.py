"""A local server with models, by the protocol of Hugging Face's hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.local_servers import serving

REVISION = "5" * 40
LARGE = ".onnx"


@contextmanager
def hub(
    models: dict[str, Path], licence: str = "mit", damaged: str = ""
) -> Iterator[tuple[str, list[str]]]:
    """Serve the files of folders as models; yields the address and the paths of downloads.

    ``damaged``: a file that is sent otherwise than it is described.
    """
    fetched: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path).strip("/")
            if path.startswith("api/models/"):
                name = path.removeprefix("api/models/").partition("/revision/")[0]
                self._send(_described(name, models[name], licence) if name in models else None)
                return
            name, _, rest = path.partition("/resolve/")
            wanted = rest.partition("/")[2]
            file = models.get(name, Path("/nowhere")) / wanted
            data = file.read_bytes() if file.is_file() else None
            if body and wanted:
                fetched.append(wanted)
            self._send(data[::-1] if data and wanted == damaged else data, body=body)

        def _send(self, data: bytes | None, *, body: bool = True) -> None:
            self.send_response(404 if data is None else 200)
            if data is None:
                self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("ETag", f'"{hashlib.sha256(data or b"").hexdigest()}"')
            self.send_header("X-Repo-Commit", REVISION)
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            if body:
                self.wfile.write(data or b"")

        def log_message(self, *_args: Any) -> None:
            """Says nothing."""

    with serving(Handler) as port:
        yield f"http://127.0.0.1:{port}", fetched


def _described(name: str, folder: Path, licence: str) -> bytes:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    siblings = [_sibling(path, str(path.relative_to(folder))) for path in files]
    told = {"id": name, "modelId": name, "sha": REVISION, "siblings": siblings}
    return json.dumps(told | {"tags": ["onnx", f"license:{licence}"], "private": False}).encode()


def _sibling(path: Path, name: str) -> dict[str, Any]:
    data = path.read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    told = {"rfilename": name, "size": len(data), "blobId": blob}
    if path.suffix != LARGE:
        return told
    digest = hashlib.sha256(data).hexdigest()
    return told | {"lfs": {"sha256": digest, "size": len(data), "pointerSize": 130}}
