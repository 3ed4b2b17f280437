"""A worker whose process ends, without a word, at the first event for a router that it knows."""

import asyncio
import os
from typing import NoReturn

from router_state.engine import Engine
from streams.service.lifetime import serve
from streams.service.worker import build_worker
from streams.settings import load_settings


def crash(*_: object, **__: object) -> NoReturn:
    """End the process as a fault of compiled code does."""
    os._exit(3)


if __name__ == "__main__":
    Engine.apply = crash  # type: ignore[method-assign]
    asyncio.run(serve(build_worker(load_settings())))
