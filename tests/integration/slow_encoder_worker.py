"""A worker whose encoder takes longer for a batch than its session may be silent."""

import asyncio
import logging
import os
import sys
import time

import numpy as np

from agents.ports import Prompt
from agents.refusal_kinds import EncoderUnavailable
from router_state.config import Vector
from streams.encoder.projection import Projection
from streams.service import agent_ports
from streams.service.lifetime import serve
from streams.service.worker import build_worker
from streams.settings import Settings, load_settings


class SlowEncoder:
    """Give every prompt the same context, late; blocks a thread, as the true one does."""

    projections = (Projection.identity(4),)
    trouble = None

    def __init__(self, settings: Settings) -> None:
        self._seconds = float(os.environ["SLOW_ENCODER_SECONDS"])

    async def start(self) -> None:
        """Load nothing."""

    async def __call__(self, prompts: list[Prompt]) -> list[Vector | EncoderUnavailable]:
        await asyncio.to_thread(time.sleep, self._seconds)
        return [np.ones(self.projections[0].dimensions) for _ in prompts]


if __name__ == "__main__":
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
        stream=sys.stdout,
    )
    agent_ports.PromptEncoder = SlowEncoder  # type: ignore[attr-defined,assignment]
    asyncio.run(serve(build_worker(load_settings())))
