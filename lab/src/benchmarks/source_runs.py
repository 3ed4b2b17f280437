"""Play runs of judges, and keep them in a file, so that what was played is not played again."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from benchmarks.source_play import Run, play
from benchmarks.source_worlds import World


class Runs:
    """Runs by method, share, seed and world.

    Args:
        kept: file of one commit's runs, a line of JSON each; it is added to. None: nothing is kept.
    """

    def __init__(self, kept: Path | None) -> None:
        self.kept, self.played = kept, dict[str, Run]()
        if kept is not None and kept.exists():
            for line in kept.read_text(encoding="utf-8").splitlines():
                name, run = json.loads(line)
                self.played[name] = Run(*run)

    def play(self, one: World, method: str, share: float, seed: int) -> Run:
        """Return a run; of gold alone it is the same whatever the judges say."""
        judges = () if method == "gold" else one.judges
        seen = zlib.crc32(b"".join(part.tobytes() for part in (one.x, one.gold, *judges)))
        name = f"{method} {share} {seed} {seen}"
        if name not in self.played:
            self.played[name] = play(one, method, share, seed)
            if self.kept is not None:
                with self.kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([name, self.played[name]]) + "\n")
        return self.played[name]
