"""The page's files, read once."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from doors.gateway.problems import Problem
from drawing.page import ASSETS

FOLDERS = ASSETS, Path(__file__).parent / "assets"
"""Folders of files that are served: what reports draw with, and the page's own."""
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Media types, by the end of a file's name; what has none of these is not served."""


class Assets:
    """The files by their path below the page."""

    def __init__(self) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for folder in FOLDERS
            for path in sorted(folder.rglob("*"))
            if path.suffix in KINDS
        }
        self._packed = {name: gzip.compress(body, mtime=0) for name, body in self._files.items()}
        self._tags = {
            name: f'"{hashlib.sha256(body).hexdigest()[:20]}"' for name, body in self._files.items()
        }

    def answer(self, name: str, request: Request) -> Response:
        """Return a file, or that the browser's copy is the same. Raises Problem."""
        if name not in self._files:
            raise Problem("not_found")
        # By content: after an upgrade the browser fetches what has changed, and only that.
        tag = self._tags[name]
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        body, headers = self._files[name], {"ETag": tag, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["Content-Encoding"] = self._packed[name], "gzip"
        return Response(body, media_type=KINDS[Path(name).suffix], headers=headers)
