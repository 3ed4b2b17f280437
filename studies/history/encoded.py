"""Contexts of a history: as recorded, or for prompts encoded once and cached on disk by the
prompt's hash.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ground.files.cache_folder import cache_folder
from router_state.config import ProjectionRef, Vector
from schemas.quick import Request

Encode = Callable[[list[str]], np.ndarray]
KEPT_TOGETHER = 5_000
"""Contexts in one commit: a second of encoding. Commits are slow, as they write all over the
file."""


class Contexts:
    """Give every request its context.

    Args:
        open_encoder: returns the identity and the encoder of a projection. A number stands for the
            service's own projection to that many dimensions. Each projection is opened when its
            first prompt is to be encoded.
        progress: called with the number of prompts encoded so far.
        folder: where encoded prompts are kept.
    """

    def __init__(
        self,
        open_encoder: Callable[[ProjectionRef | int], tuple[str, Encode]],
        *,
        progress: Callable[[int], None] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._open_encoder = open_encoder
        self._progress = progress
        self._folder = folder or cache_folder("contexts")
        self._opened: dict[ProjectionRef | int, tuple[sqlite3.Connection, Encode]] = {}
        self.encoded = 0

    def of(self, request: Request, projection: ProjectionRef | int) -> Vector:
        """Return a request's context, shape (d,), by its router's projection, or by the service's
        own of this many dimensions.
        """
        if request.context is not None:
            return np.array(request.context, np.float64)
        prompt = request.prompt or ""
        kept, encode = self._open(projection)
        digest = hashlib.sha256(prompt.encode()).digest()
        # Keyed by a hash: the file on disk must hold no prompts.
        row = kept.execute("SELECT x FROM contexts WHERE prompt = ?", (digest,)).fetchone()
        if row is not None:
            return np.frombuffer(row[0], "<f8")
        x: Vector = encode([prompt])[0]
        kept.execute(
            "INSERT OR REPLACE INTO contexts VALUES (?, ?)", (digest, x.astype("<f8").tobytes())
        )
        self.encoded += 1
        # So that an interrupted replay need not encode everything again.
        if self.encoded % KEPT_TOGETHER == 0:
            kept.commit()
        if self._progress is not None and self.encoded % 100 == 0:
            self._progress(self.encoded)
        return x

    def close(self) -> None:
        """Write the encoded contexts to disk, and close the files."""
        while self._opened:
            _, (kept, _) = self._opened.popitem()
            kept.commit()
            kept.close()

    def _open(self, projection: ProjectionRef | int) -> tuple[sqlite3.Connection, Encode]:
        found = self._opened.get(projection)
        if found is None:
            identity, encode = self._open_encoder(projection)
            self._folder.mkdir(parents=True, exist_ok=True)
            # Each encoder and projection has its own file, as each makes other contexts.
            kept = sqlite3.connect(
                self._folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.sqlite"
            )
            kept.execute("CREATE TABLE IF NOT EXISTS contexts (prompt BLOB PRIMARY KEY, x BLOB)")
            found = self._opened[projection] = kept, encode
        return found
