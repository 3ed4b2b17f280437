"""The script that registers schemas speaks the registry's protocol, and says what went wrong."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from schemas import EVENTS

SCRIPT = Path(__file__).parents[2] / "tools" / "register-schemas"


class Registry(HTTPServer):
    """Keeps what was posted; refuses `refused`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posted: list[tuple[str, Any]] = []
        self.refused = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posted.append((self.path, body))
        refused = bool(self.server.refused) and self.server.refused in self.path
        answer = (
            {"error_code": 409, "message": "incompatible"}
            if refused
            else {"id": len(self.server.posted)}
        )
        data = json.dumps(answer).encode()
        self.send_response(409 if refused else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run(registry: Registry, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), registry.url, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_every_topics_schema_is_registered_under_its_subject(registry: Registry) -> None:
    assert run(registry, "--prefix", "acme.").returncode == 0
    assert {path for path, _ in registry.posted} == {
        f"/subjects/acme.{topic}-value/versions" for topic in EVENTS
    }
    assert all(
        body["schemaType"] == "JSON" and "$id" in json.loads(body["schema"])
        for _, body in registry.posted
    )


def test_check_registers_nothing_and_a_refusal_is_told(registry: Registry) -> None:
    registry.refused = "pb.costs-value"
    ran = run(registry, "--check")
    assert ran.returncode == 1
    assert "pb.costs-value: incompatible" in ran.stderr
    assert not [path for path, _ in registry.posted if path.endswith("/versions")]
