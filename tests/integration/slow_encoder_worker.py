"""A worker whose encoder takes longer for a batch than its session may be silent."""

import asyncio
import logging
import os
import sys
import time

import numpy as np

from streams.service import worker
from streams.service.app import serve
from streams.settings import Settings, load_settings


class SlowEncoder:
    """Give every prompt the same context, late; blocks a thread, as the true one does."""

    dimensions = 5
    trouble = None

    def __init__(self, settings: Settings) -> None:
        self._seconds = float(os.environ["SLOW_ENCODER_SECONDS"])

    async def start(self) -> None:
        """Load nothing."""

    async def __call__(
        self, prompts: list[str]
    ) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
        await asyncio.to_thread(time.sleep, self._seconds)
        return np.ones((len(prompts), self.dimensions))


if __name__ == "__main__":
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
        stream=sys.stdout,
    )
    worker.PromptEncoder = SlowEncoder  # type: ignore[assignment,misc]
    asyncio.run(serve(worker.build_worker(load_settings())))
