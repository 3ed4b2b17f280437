"""Fetch in sessions (KIP-227): a broker remembers what is fetched of it, so that a request names
the partitions that have moved on, and an answer those with news.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any

from aiokafka.consumer import consumer, fetcher
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v11, FetchResponse_v11
from aiokafka.structs import TopicPartition

if TYPE_CHECKING:
    from aiokafka.consumer.subscription_state import Assignment

NO_SESSION = 0
"""The broker's number of a session that does not exist: it has no room for one."""
BEGINS = 0
"""Epoch of a request that begins a session, and ends the one of the same number."""
LAST_EPOCH = 2**31 - 1
"""The first one follows it."""
NOT_FOUND = 70
"""Kafka's code: the broker has dropped the session, or has restarted."""

Places = dict[TopicPartition, tuple[int, int]]
"""Offset from which a partition is fetched, and most bytes of it."""


@dataclass(slots=True)
class Session:
    """Keep what one broker knows of the fetches of this consumer.

    Attributes:
        epoch: of the next request.
        known: what the broker fetches while nothing else is said.
    """

    number: int = NO_SESSION
    epoch: int = BEGINS
    known: Places = field(default_factory=dict)

    def name(self, wanted: Places) -> tuple[Places, list[TopicPartition]]:
        """Return what a request has to say: partitions that are new or have moved, and those to be
        forgotten.
        """
        begins = self.epoch == BEGINS
        known, self.known = {} if begins else self.known, wanted
        # Without an answer nobody knows what the broker has read of the request.
        self.epoch = BEGINS
        moved = {tp: place for tp, place in wanted.items() if known.get(tp) != place}
        return moved, [tp for tp in known if tp not in wanted]

    def answered(self, number: int, error: int, *, epoch: int) -> None:
        """Note the answer to the request of an epoch."""
        if error:
            # Any other number is given back with the request that begins the next session.
            self.number = NO_SESSION if error == NOT_FOUND else self.number
        else:
            self.number = number
            self.epoch = BEGINS if number == NO_SESSION else epoch % LAST_EPOCH + 1


class SessionRequest(FetchRequest):  # type: ignore[misc]
    """One fetch of a session. It reads its answer itself: aiokafka looks for the offsets of those
    partitions that the answer names, and for no others.

    Attributes:
        unnamed: partitions of which the broker had nothing new to say.

    Args:
        places: what is wanted, all of it.
        limits: milliseconds and bytes, the isolation level.
    """

    def __init__(self, session: Session, places: Places, *limits: int) -> None:
        super().__init__(*limits, [])
        self._session, self._places = session, places
        self.unnamed: Set[TopicPartition] = frozenset()

    def build(self, request_struct_class: type[FetchRequest_v11]) -> FetchRequest_v11:
        """Make the request, now that its connection is there."""
        if request_struct_class is not FetchRequest_v11:
            raise IncompatibleBrokerVersion("fetches need Kafka 2.3 or later")
        self._epoch, number = self._session.epoch, self._session.number
        moved, forgotten = self._session.name(self._places)
        request = FetchRequest_v11(
            *(-1, self._max_wait_ms, self._min_bytes, self._max_bytes, self._isolation_level),
            *(number, self._epoch),
            _by_topic((tp, (tp.partition, -1, at, -1, most)) for tp, (at, most) in moved.items()),
            _by_topic((tp, tp.partition) for tp in forgotten),
            "",
        )
        request.RESPONSE_TYPE = self
        return request

    def decode(self, data: BytesIO) -> FetchResponse_v11:
        """Read the answer."""
        answer = FetchResponse_v11.decode(data)
        self._session.answered(answer.session_id, answer.error_code, epoch=self._epoch)
        named = {
            TopicPartition(topic, found[0])
            for topic, all_of_it in answer.topics
            for found in all_of_it
        }
        self._topics = _by_topic((tp, (tp.partition, *self._places[tp])) for tp in named)
        if not answer.error_code:
            self.unnamed = self._places.keys() - named
        return answer


def _by_topic(found: Any) -> list[tuple[str, list[Any]]]:
    topics = defaultdict[str, list[Any]](list)
    for tp, said in found:
        topics[tp.topic].append(said)
    return list(topics.items())


class SessionFetcher(fetcher.Fetcher):  # type: ignore[misc]
    """Aiokafka's fetcher, with a session at each broker instead of requests that name all."""

    def __init__(self, *args: object, **options: object) -> None:
        self._sessions = defaultdict[int, Session](Session)
        super().__init__(*args, **options)

    def _get_actions_per_node(self, assignment: Assignment) -> tuple[object, ...]:
        """Return what is to be sent to whom now, as aiokafka does, without replicas of a rack."""
        leader_of = self._client.cluster.leader_for_partition
        most = self._max_partition_fetch_bytes
        due, resets = defaultdict[int, Places](dict), defaultdict[int, list[Any]](list)
        held, paused, unled = defaultdict[int, list[float]](list), [], False
        for tp in assignment.tps:
            node = leader_of(tp)
            if tp in self._records:
                if wait := self._records[tp].calculate_backoff():
                    held[node].append(wait)
            elif node in self._in_flight:
                continue
            elif node is None or node == -1:
                unled = True
            elif not (state := assignment.state_value(tp)).has_valid_position:
                resets[node].append(tp)
            elif state.paused:
                paused.append(state.resume_fut)
            else:
                due[node][tp] = state.position, most
        requests = [
            (node, self._request(node, places))
            for node, places in due.items()
            if node not in held and node not in resets
        ]
        wait = min(map(max, held.values())) if held else self._fetcher_timeout
        return requests, resets, wait, unled, paused

    def _request(self, node: int, places: Places) -> SessionRequest:
        bounds = self._fetch_max_wait_ms, self._fetch_min_bytes, self._fetch_max_bytes
        return SessionRequest(self._sessions[node], places, *bounds, self._isolation_level)

    async def _proc_fetch_request(
        self, assignment: Assignment, node_id: int, request: SessionRequest
    ) -> bool:
        found: bool = await super()._proc_fetch_request(assignment, node_id, request)
        if assignment.active:
            # aiokafka notes that of those that are named.
            now = int(1000 * time.time())
            for tp in request.unnamed:
                assignment.state_value(tp).timestamp = now
        return found


def fetch_in_sessions() -> None:
    """Let every consumer of this process fetch so."""
    consumer.Fetcher = SessionFetcher
