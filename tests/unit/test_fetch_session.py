"""What a fetch says to its broker, and what it takes from the answer."""

from io import BytesIO
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.fetch import FetchRequest_v10, FetchRequest_v11, FetchResponse_v11

from streams.faust.fetch_session import LAST_EPOCH, Places, Session, SessionRequest

A, B, C = (TopicPartition("t", n) for n in range(3))
INVALID_EPOCH = 71


def at(**offsets: int) -> Places:
    return {TopicPartition("t", "abc".index(name)): (offset, 9) for name, offset in offsets.items()}


def ask(session: Session, wanted: Places) -> tuple[int, int, Places, list[TopicPartition]]:
    number, epoch = session.number, session.epoch
    return number, epoch, *session.name(wanted)


def test_a_request_names_what_moved_what_is_new_and_what_is_over() -> None:
    session = Session()
    assert ask(session, at(a=1, b=1)) == (0, 0, at(a=1, b=1), [])
    session.answered(7, 0, epoch=0)
    assert ask(session, at(a=1, b=2, c=1)) == (7, 1, at(b=2, c=1), [])
    session.answered(7, 0, epoch=1)
    assert ask(session, at(b=2)) == (7, 2, {}, [A, C])
    session.answered(7, 0, epoch=2)
    assert ask(session, at(a=1, b=2)) == (7, 3, at(a=1), [])


def test_a_request_without_an_answer_is_followed_by_one_that_names_all_and_ends_the_session() -> (
    None
):
    session = Session()
    ask(session, at(a=1))
    session.answered(7, 0, epoch=0)
    ask(session, at(a=2))
    assert ask(session, at(a=2, b=1)) == (7, 0, at(a=2, b=1), [])


@pytest.mark.parametrize(("error", "number"), [(70, 0), (INVALID_EPOCH, 7)])
def test_a_session_that_the_broker_does_not_know_is_begun_again(error: int, number: int) -> None:
    session = Session()
    ask(session, at(a=1))
    session.answered(7, 0, epoch=0)
    ask(session, at(a=2))
    session.answered(0, error, epoch=1)
    assert ask(session, at(a=2)) == (number, 0, at(a=2), [])


def test_a_broker_without_room_for_a_session_is_told_all_each_time() -> None:
    session = Session()
    for offset in range(3):
        assert ask(session, at(a=offset)) == (0, 0, at(a=offset), [])
        session.answered(0, 0, epoch=0)


def test_the_first_epoch_follows_the_last() -> None:
    session = Session()
    session.answered(7, 0, epoch=LAST_EPOCH - 1)
    assert session.epoch == LAST_EPOCH
    session.answered(7, 0, epoch=LAST_EPOCH)
    assert session.epoch == 1


def request(session: Session, places: Places) -> tuple[SessionRequest, Any]:
    made = SessionRequest(session, places, 200, 1, 5000, 1)
    return made, made.build(FetchRequest_v11)


def answer(*found: tuple[int, int], error: int = 0, number: int = 7) -> BytesIO:
    """Return an answer that names partitions, each with its error."""
    parts = [(partition, code, 5, 5, 0, None, -1, b"") for partition, code in found]
    topics = [("t", parts)] if parts else []
    return BytesIO(FetchResponse_v11(0, error, number, topics).encode())


def test_a_request_is_kafkas_and_knows_the_offsets_of_what_its_answer_names() -> None:
    session = Session()
    _, first = request(session, at(a=1, b=2))
    body = first.SCHEMA.decode(BytesIO(first.encode()))
    topics = [("t", [(0, -1, 1, -1, 9), (1, -1, 2, -1, 9)])]
    assert body == (-1, 200, 1, 5000, 1, 0, 0, topics, [], "")
    assert first.RESPONSE_TYPE.decode(answer((0, 0), (1, 0))).session_id == 7
    made, second = request(session, at(b=2, c=4))
    body = second.SCHEMA.decode(BytesIO(second.encode()))
    topics = [("t", [(2, -1, 4, -1, 9)])]
    assert body == (-1, 200, 1, 5000, 1, 7, 1, topics, [("t", [0])], "")
    second.RESPONSE_TYPE.decode(answer((1, 0)))
    assert (made.topics, made.unnamed) == ([("t", [(1, 2, 9)])], {C})


def test_an_error_of_the_session_says_nothing_of_its_partitions() -> None:
    session = Session()
    made, first = request(session, at(a=1))
    first.RESPONSE_TYPE.decode(answer(error=INVALID_EPOCH))
    assert (made.topics, made.unnamed) == ([], set())


def test_a_broker_that_is_too_old_is_said() -> None:
    with pytest.raises(IncompatibleBrokerVersion, match=r"Kafka 2\.3"):
        SessionRequest(Session(), at(a=1), 200, 1, 5000, 1).build(FetchRequest_v10)
