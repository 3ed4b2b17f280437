"""Look at a worker as a whole: whether it is ready, whether Kafka answers, what its gauges show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ground.boundary import fatal
from streams.faust.membership import membership_error
from streams.log.reach import Reach
from streams.service.chatter import Chatter

if TYPE_CHECKING:
    from streams.service.worker_app import App

WATCH_EVERY = 1.0
"""Seconds between two looks at whether the worker makes progress."""
SILENT_AFTER = 3.0
"""Seconds without an answer after which a broker is away; heartbeats and fetches are answered
several times a second."""
CALM = 1.5
"""Seconds of answers, and without a complaint of the client, after which it is back."""


class Condition:
    """The condition of a worker, from its start on."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._kafka = Reach(
            f"Kafka at {app.settings.bootstrap} (PB_BOOTSTRAP)", fault="is in trouble"
        )
        self._chatter = Chatter(lambda: self._kafka)

    def listen(self) -> None:
        """Hear what the client complains of."""
        self._chatter.listen()

    def not_ready(self) -> str | None:
        """Return why the worker is not ready, or None."""
        app = self._app
        if app.should_stop:
            return "stopping"
        if app.rebalancing or not app.tables.actives_ready:
            return "recovering"
        if not app.states.owned:
            return "no partitions assigned"
        # Its partitions are taken away only after this: what it read meanwhile it could not write.
        if not app.lease.is_member:
            return "the group has gone on without this worker: joining it again"
        if (age := app.consumer.stalled_for) > app.settings.stall_after:
            return f"no progress for {age:.0f} s"
        return self._trouble()

    def _trouble(self) -> str | None:
        app = self._app
        if (silence := self._silence()) > SILENT_AFTER:
            return f"Kafka at {app.settings.bootstrap} has not answered for {silence:.0f} s"
        if app.redis is not None and (trouble := app.redis.trouble):
            return trouble
        if app.encoder is not None and app.encoder.trouble:
            return app.encoder.trouble
        return "; ".join(map(str, app.consumer.unreadable)) or None

    async def watch(self) -> None:
        """End the process on an error that aiokafka only stores."""
        app = self._app
        with fatal():
            while not app.should_stop:
                if (error := membership_error(app)) is not None:
                    app._crash(error)
                self._look_at_kafka()
                app.metrics.ready.set(self.not_ready() is None)
                await app.sleep(WATCH_EVERY)

    def _silence(self) -> float:
        """Return for how many seconds a broker that this worker needs has not answered: the
        group's, or a partition's.
        """
        app = self._app
        return max(app.lease.silence, float(app.consumer.silence))

    def _look_at_kafka(self) -> None:
        app = self._app
        silence = self._silence() if app.states.owned and not app.rebalancing else 0.0
        if silence > SILENT_AFTER:
            self._kafka.failed(f"no answer for {silence:.0f} s")
        elif silence < CALM and not self._chatter.heard_within(CALM):
            self._kafka.answered()

    def measure(self) -> None:
        """Set the gauges before they are read."""
        app = self._app
        app.metrics.ready.set(self.not_ready() is None)
        app.metrics.partitions.set(len(app.states.owned))
        app.metrics.unacked.set(app.sources.unfinished)
        committed, ends = app.monitor.tp_committed_offsets, app.monitor.tp_end_offsets
        for gauge in (app.metrics.committed, app.metrics.end):
            gauge.clear()
        for tp in app.consumer.assignment() if app._consumer is not None else ():
            if tp.topic != app.settings.changelog:
                at = {
                    "topic": tp.topic.removeprefix(app.settings.prefix),
                    "partition": tp.partition,
                }
                # Before the first commit of an assignment it is where that assignment began.
                app.metrics.committed.labels(**at).set(committed.get(tp) or app.start_at(tp) or 0)
                app.metrics.end.labels(**at).set(ends.get(tp) or app.start_at(tp) or 0)
