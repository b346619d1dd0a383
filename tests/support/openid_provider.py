"""An OpenID provider on this machine that signs in whom a test names, without asking."""

from __future__ import annotations

import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey


class Provider:
    """Discovery, keys, and a code for a token; ``user`` is who signs in."""

    def __init__(self) -> None:
        self.user: dict[str, Any] = {"sub": "1", "email": "ada@example.org", "name": "Ada"}
        self._key = RSAKey.generate_key(2048, {"kid": "one"})
        self._nonces: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def secrets(self, app: str, users: str = "") -> str:
        """Streamlit's secrets for an app at ``app``."""
        return (
            f'[auth]\nredirect_uri = "{app}/oauth2callback"\n'
            'cookie_secret = "a secret that is long enough"\n'
            'client_id = "homer"\nclient_secret = "word"\n'
            f'server_metadata_url = "{self.url}/.well-known/openid-configuration"\n'
            f"[homer]\nusers = [{users}]\n"
        )

    def _answer(self, path: str, output: dict[str, str]) -> tuple[dict[str, Any] | None, str]:
        """A document, or where to go."""
        match path:
            case "/.well-known/openid-configuration":
                return self._described(), ""
            case "/keys":
                return {"keys": [self._key.as_dict(private=False)]}, ""
            case "/authorize":
                code = secrets.token_hex(8)
                self._nonces[code] = output.get("nonce", "")
                back = urlencode({"code": code, "state": output["state"]})
                return None, f"{output['redirect_uri']}?{back}"
            case "/token":
                return {
                    "access_token": "a",
                    "token_type": "Bearer",
                    "expires_in": 60,
                    "id_token": self._token(self._nonces.pop(output["code"])),
                }, ""
        return {}, ""

    def _described(self) -> dict[str, Any]:
        places = {"authorization": "authorize", "token": "token"}
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "id_token_signing_alg_values_supported": ["RS256"],
            **{f"{name}_endpoint": f"{self.url}/{path}" for name, path in places.items()},
        }

    def _token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": "homer", "iat": now, "exp": now + 60, "nonce": nonce}
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims | self.user, self._key)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._tell(urlsplit(self.path).query)

            def do_POST(self) -> None:
                self._tell(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

            def _tell(self, query: str) -> None:
                output = {name: values[0] for name, values in parse_qs(query).items()}
                found, where = provider._answer(urlsplit(self.path).path, output)
                body = json.dumps(found).encode() if found is not None else b""
                self.send_response(302 if where else 200)
                self.send_header("Location", where) if where else None
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_told: object) -> None:
                """Says nothing."""

        return Handler
