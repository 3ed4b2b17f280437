"""A worker in a process of its own, with its settings from the environment, until SIGTERM."""

import asyncio
import logging
import sys

from streams.service.lifetime import serve
from streams.service.worker import build_worker
from streams.settings import load_settings

if __name__ == "__main__":
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
        stream=sys.stdout,
    )
    app = build_worker(load_settings())
    asyncio.run(serve(app))
