"""Apply records to pools, families and their members, one by one."""

from __future__ import annotations

from agents.group import Answers, Batch
from agents.partition.partition import Partition
from agents.table.parking import Parked
from agents.taking.intake import WrongPartition
from ground.messages import Record, key_text
from router_state.errors import RouterStateError
from schemas.event import MalformedEvent


class OneByOne(Batch):
    """Records of one topic, each of which is applied or refused by itself."""

    __slots__ = ("_partition",)

    def __init__(self, partition: Partition, messages: list[Record]) -> None:
        super().__init__(messages)
        self._partition = partition

    def apply(self, answers: Answers) -> None:
        """Apply the records. A record that the state contains or that belongs elsewhere changes
        nothing.
        """
        partition = self._partition
        for message in self.messages:
            if partition.watermarks.is_applied(message.topic, message.offset):
                continue
            answers.at = message
            try:
                self._apply(message, partition, answers)
            except (MalformedEvent, WrongPartition, RouterStateError) as error:
                key = key_text(message)
                parked = Parked.of(message, error, router_id=key)
                partition.refuse_later(parked, error, answers)

    def _apply(self, message: Record, partition: Partition, answers: Answers) -> None:
        raise NotImplementedError
