"""The condition of a worker as a whole: its readiness, Kafka's answers, its gauges."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ground.boundary import fatal
from streams.faust.faust_app import FaustApp
from streams.log.reach import Reach
from streams.service.chatter import Chatter
from streams.service.worker_metrics import Metrics

WATCH_EVERY = 1.0
"""Seconds between two looks at whether the worker makes progress."""
SILENT_AFTER = 3.0
"""Seconds without an answer after which a broker is away; heartbeats and fetches are answered
several times a second."""
CALM = 1.5
"""Seconds of answers without a complaint of the client after which a broker counts as back."""


class Condition:
    """The condition of a worker, from its start on.

    Args:
        troubles: functions, each of which returns what is wrong with a service other than Kafka,
            or None; more may be added until the worker starts.
    """

    def __init__(
        self, app: FaustApp, metrics: Metrics, troubles: Iterable[Callable[[], str | None]]
    ) -> None:
        self._app, self._metrics, self._troubles = app, metrics, troubles
        self._kafka = Reach(
            f"Kafka at {app.settings.bootstrap} (PB_BOOTSTRAP)", fault="is in trouble"
        )
        self._chatter = Chatter(lambda: self._kafka)

    def listen(self) -> None:
        """Filter the log for complaints of the client."""
        self._chatter.listen()

    def not_ready(self) -> str | None:
        """Return why the worker is not ready, or None."""
        app = self._app
        if app.should_stop:
            return "stopping"
        if app.recovering:
            return "recovering"
        if not app.states.owned:
            return "no partitions assigned"
        # The group takes its partitions away only after this: until then the worker could not
        # write what it reads.
        if not app.session.is_member:
            return "the group has gone on without this worker: joining it again"
        if (age := app.consumer.stalled_for) > app.settings.stall_after:
            return f"no progress for {age:.0f} s"
        return self._trouble()

    def _trouble(self) -> str | None:
        app = self._app
        if (silence := self._silence()) > SILENT_AFTER:
            return f"Kafka at {app.settings.bootstrap} has not answered for {silence:.0f} s"
        beside = next(filter(None, (trouble() for trouble in self._troubles)), None)
        return beside or "; ".join(map(str, app.consumer.unreadable)) or None

    async def watch(self) -> None:
        """End the process on an error that aiokafka only stores."""
        app = self._app
        with fatal():
            while not app.should_stop:
                if (error := app.consumer.membership_error) is not None:
                    app.end(error)
                self._look_at_kafka()
                self._metrics.ready.set(self.not_ready() is None)
                await app.sleep(WATCH_EVERY)

    def _silence(self) -> float:
        """Return for how many seconds a broker that this worker needs has not answered: the
        group's, or a partition's.
        """
        return max(self._app.session.silence, float(self._app.consumer.silence))

    def _look_at_kafka(self) -> None:
        app = self._app
        silence = self._silence() if app.states.owned and not app.rebalancing else 0.0
        if silence > SILENT_AFTER:
            self._kafka.failed(f"no answer for {silence:.0f} s")
        elif silence < CALM and not self._chatter.received_within(CALM):
            self._kafka.answered()

    def measure(self) -> None:
        """Set the gauges before they are read."""
        app, metrics = self._app, self._metrics
        metrics.ready.set(self.not_ready() is None)
        metrics.partitions.set(len(app.states.owned))
        metrics.unacked.set(app.sources.unfinished)
        for gauge in (metrics.committed, metrics.end):
            gauge.clear()
        for tp in app.consumer.placed:
            if tp.topic != app.settings.changelog:
                at = {
                    "topic": tp.topic.removeprefix(app.settings.prefix),
                    "partition": tp.partition,
                }
                # Before the first commit of an assignment, the offset is that at which the
                # assignment began.
                begin = app.consumer.start_at(tp) or 0
                committed = app.monitor.tp_committed_offsets.get(tp)
                metrics.committed.labels(**at).set(committed or begin)
                metrics.end.labels(**at).set(app.monitor.tp_end_offsets.get(tp) or begin)
