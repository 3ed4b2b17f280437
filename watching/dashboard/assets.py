"""Load the page's files once, and serve them."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from doors.gateway.problems import Problem
from drawing.page import ASSETS

FOLDERS = ASSETS, Path(__file__).parent / "assets"
"""Folders that are served: the files shared with reports, and the page's own."""
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Media types by suffix; other files are not served."""


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
        """Return a file, or 304 if the browser's copy is current. Raises Problem."""
        if name not in self._files:
            raise Problem("not_found")
        # The tag is a hash of the content, so that after an upgrade the browser fetches only
        # changed files.
        tag = self._tags[name]
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        body, headers = self._files[name], {"ETag": tag, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["Content-Encoding"] = self._packed[name], "gzip"
        return Response(body, media_type=KINDS[Path(name).suffix], headers=headers)
