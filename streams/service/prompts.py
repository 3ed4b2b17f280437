"""Encode prompts off the event loop, with an encoder that is loaded at the start and may be
unavailable.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from agents.ports import Prompt
from agents.refusal_kinds import EncoderUnavailable
from ground.boundary import Attempt
from ground.files.array_folder import UnusableArrays
from router_state.config import Matrix, ProjectionRef, Vector
from streams.encoder.encoder_by_settings import encoder_of, projections_of
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.projected_encoder import Encoder
from streams.encoder.projections import Encoders
from streams.settings import Settings

log = logging.getLogger(__name__)

SLOW, SAY_AGAIN_AFTER, LONG = 0.25, 60.0, 100_000
"""Seconds of encoding after which a client's default timeout ends, seconds between two lines of
the log about slow encoding, and characters from which a prompt counts as long.
"""
TRY_AGAIN_AFTER = 30.0
"""Seconds after which an encoder that could not be loaded is tried again: its files may
have come.
"""


class PromptEncoder:
    """Encode prompts on a thread of its own.

    Args:
        load: makes the encoder; may take long, and may fail.

    Attributes:
        projections: checksums of the projections for routers without one of their own, by number of
            dimensions.
        trouble: why there is no encoder (yet); None once there is one.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        load: Callable[[Settings], Encoder] = encoder_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._load = load
        self._clock = clock
        self._encoders: Encoders | None = None
        self._missing: set[ProjectionRef] = set()
        self._failed_at: float | None = None
        self._slow_at: float | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="encoder")
        self.projections = projections_of(settings)
        self.trouble: str | None = "loading the encoder"

    async def start(self) -> None:
        """Load the encoder; a failure is logged and kept in `trouble`."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._loaded)

    async def __call__(self, prompts: list[Prompt]) -> list[Vector | EncoderUnavailable]:
        """Return a context, shape (d,), for each prompt, or why it has none."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._encode_all, prompts
        )

    def _encode_all(self, prompts: list[Prompt]) -> list[Vector | EncoderUnavailable]:
        groups: dict[ProjectionRef | int, list[int]] = {}
        for i, (_, named) in enumerate(prompts):
            groups.setdefault(named, []).append(i)
        contexts: dict[int, Vector | EncoderUnavailable] = {}
        for named, at in groups.items():
            found = self._encode_together([prompts[i][0] for i in at], named)
            contexts |= zip(at, found, strict=True)
        return [contexts[i] for i in range(len(prompts))]

    def _encode_together(
        self, prompts: list[str], named: ProjectionRef | int
    ) -> list[Vector | EncoderUnavailable]:
        encoder = self._encoder(named)
        if isinstance(encoder, EncoderUnavailable):
            return [encoder] * len(prompts)
        began = self._clock()
        # One prompt may be too much for the encoder; the others must not fail with it.
        with Attempt() as together:
            contexts = list(_encoded(encoder, prompts))
            self._say_if_slow(prompts, self._clock() - began)
            return contexts
        log.warning(
            "%d prompts can't be encoded together: each is encoded alone",
            len(prompts),
            exc_info=together.error,
        )
        return [_alone(encoder, prompt) for prompt in prompts]

    def _say_if_slow(self, prompts: list[str], seconds: float) -> None:
        now, longest = self._clock(), max(map(len, prompts))
        said = self._slow_at is not None and now - self._slow_at < SAY_AGAIN_AFTER
        # Many short prompts may take as long together, and none of them is worth a line of the
        # log.
        if seconds < SLOW or longest < LONG or said:
            return
        self._slow_at = now
        log.warning(
            "encoding %d prompts took %.1f s, as the longest has %d characters: callers may have "
            "gone to their fallbacks; PB_PROMPT_BYTES refuses long prompts",
            len(prompts),
            seconds,
            longest,
        )

    def _encoder(self, named: ProjectionRef | int) -> Encoder | EncoderUnavailable:
        encoders = self._loaded()
        if encoders is None:
            return EncoderUnavailable("the encoder of this worker is not available: send a context")
        try:
            encoder = encoders.of(named)
        except (UnusableArrays, EncoderError) as error:
            assert isinstance(named, ProjectionRef)
            if named not in self._missing:
                log.error("prompts of routers with it are refused: %s", error)
                self._missing.add(named)
            return EncoderUnavailable(
                f"this worker does not have the router's projection {named.ref!r}: send a context"
            )
        if isinstance(named, ProjectionRef):
            self._missing.discard(named)
        return encoder

    def _loaded(self) -> Encoders | None:
        if self._encoders is not None or (
            self._failed_at is not None and self._clock() - self._failed_at < TRY_AGAIN_AFTER
        ):
            return self._encoders
        started = time.monotonic()
        # Any failure is caught, as requests with a context can still be routed.
        with Attempt() as loading:
            encoder = self._load(self._settings)
            # The settings are read again: files may have come since the start.
            others = projections_of(self._settings)[1:]
            encoders = Encoders(encoder, self._settings.priors_path, others=others)
        if (error := loading.error) is not None:
            self._failed_at = self._clock()
            self.trouble = f"the encoder can't be loaded ({type(error).__name__}: {error})"
            log.error(
                "%s: prompts are refused as encoder_unavailable; look at PB_ENCODER_BACKEND and "
                "PB_ENCODER_PATH",
                self.trouble,
            )
            return None
        self.trouble = None
        log.info("encoder loaded in %.1f s: %s", time.monotonic() - started, encoder.identity)
        self._encoders = encoders
        return self._encoders


def _encoded(encoder: Encoder, prompts: list[str]) -> Matrix:
    contexts = encoder.encode(prompts)
    if contexts.shape[0] != len(prompts) or not np.isfinite(contexts).all():
        raise ValueError(
            f"{contexts.shape} numbers for {len(prompts)} prompts, or not all of them finite"
        )
    return contexts


def _alone(encoder: Encoder, prompt: str) -> Vector | EncoderUnavailable:
    with Attempt() as alone:
        row: Vector = _encoded(encoder, [prompt])[0]
        return row
    return EncoderUnavailable(f"the encoder fails on this prompt ({type(alone.error).__name__})")
