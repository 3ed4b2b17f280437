"""A worker whose program has a fault where it unpacks routers."""

import asyncio
from typing import NoReturn

from router_state.state import restoring
from streams.service.lifetime import serve
from streams.service.worker import build_worker
from streams.settings import load_settings


def faulty(*_: object, **__: object) -> NoReturn:
    """Fail as a mistake in the program does."""
    raise AttributeError("a fault of the program")


if __name__ == "__main__":
    restoring.unpack = faulty
    asyncio.run(serve(build_worker(load_settings())))
