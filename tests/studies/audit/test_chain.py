"""A chain of digests finds each record that was removed, changed or put in, and nothing else."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from studies.audit import chain
from studies.audit.chain import BrokenChain, ChainFile, follow
from studies.audit.findings import Findings
from studies.audit.topic_reading import Progress
from studies.history.records import NO_HEADERS, Record
from tests.memory_topics import MemoryTopics

TOPIC = "pb.routes"


@pytest.fixture(autouse=True, scope="module")
def short_links() -> object:
    """Let links be short, so that few records make several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "LINK_RECORDS", 3)
        yield


def record(offset: int) -> Record:
    """Return a decision's record."""
    return Record(offset, 1.7e9 + offset, b"home", b'{"seq": %d}' % offset, NO_HEADERS)


def run(path: Path, log: list[Record], *, partition: int = 0) -> Findings:
    """Chain a log once, as the command does."""
    topics, findings = MemoryTopics({("routes", partition): log}), Findings()
    file = ChainFile(path, TOPIC)
    file.append(follow(file, topics, Progress(topics), findings))
    return findings


@settings(max_examples=40)
@given(
    gaps=st.lists(st.integers(1, 4), min_size=1, max_size=30),
    runs=st.lists(st.integers(0, 30), max_size=4),
    data=st.data(),
)
def test_any_record_that_was_chained_is_missed_when_it_is_changed_or_gone(
    tmp_path_factory: pytest.TempPathFactory,
    gaps: list[int],
    runs: list[int],
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.mktemp("chain") / "chain"
    log = [record(sum(gaps[:n])) for n in range(len(gaps))]
    for length in [*sorted(runs), len(log)]:
        assert run(path, log[:length]).clean
    assert run(path, log).checked == {"records_compared": len(log)}
    at = data.draw(st.integers(0, len(log) - 1))
    changed = data.draw(
        st.sampled_from(
            [
                [],
                [replace(log[at], value=b"{}")],
                [replace(log[at], key=b"other")],
                [replace(log[at], timestamp=1.0)],
                [replace(log[at], headers={"name": "value"})],
                [log[at], record(log[at].offset + 1)],
            ]
        )
    )
    spoiled = [*log[:at], *changed, *log[at + 1 :]]
    # Nothing is known of records behind the chain, of offsets that another record has, and of
    # those before the log's beginning, which retention may have taken.
    if (at == 0 and not changed) or (len(changed) == 2 and (at + 1 == len(log) or gaps[at] == 1)):
        return
    found = run(path, spoiled)
    assert found.violations == {"chain_differs": 1}
    first, last = found.examples[0].where.split(" offsets ")[1].split(" to ")
    assert int(first) <= max(log[at].offset, *(one.offset for one in changed), 0) <= int(last)


def test_what_retention_deletes_is_told_and_the_rest_is_compared(tmp_path: Path) -> None:
    log, path = [record(n) for n in range(12)], tmp_path / "chain"
    run(path, log)
    found = run(path, log[4:])
    assert found.clean and found.checked == {"records_compared": 6}
    assert found.notes == {"chained_records_deleted": 1}
    assert not run(path, [*log[4:8], replace(log[8], value=b"{}"), *log[9:]]).clean
    late = run(path, [record(n) for n in range(20, 24)])
    assert late.clean and set(late.notes) == {"chained_records_deleted", "deleted_before_chained"}
    assert run(path, [record(n) for n in range(20, 24)]).checked == {"records_compared": 4}


def test_a_topic_that_was_made_again_differs(tmp_path: Path) -> None:
    path = tmp_path / "chain"
    run(path, [record(n) for n in range(5)])
    assert run(path, []).violations == {"chain_differs": 2}
    assert run(path, [record(0)], partition=1).violations == {"chain_differs": 1}


def test_no_link_can_be_changed_or_left_out_alone(tmp_path: Path) -> None:
    log, path = [record(n) for n in range(9)], tmp_path / "chain"
    run(path, log)
    head, one, two, three = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(head + one + three)
    assert not run(path, log).clean
    path.write_bytes(head + one + two.replace(b'"sha256":"', b'"sha256":"0') + three)
    assert run(path, log).violations == {"chain_differs": 2}


def test_a_line_that_was_cut_off_is_written_again(tmp_path: Path) -> None:
    log, path = [record(n) for n in range(9)], tmp_path / "chain"
    run(path, log)
    whole = path.read_bytes()
    for cut in (whole[:-40], whole[:10], b""):
        path.write_bytes(cut)
        assert run(path, log).clean
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "text", ["a\n", "{}\n", '{"format": 1, "topic": "other", "made_by": ""}\n']
)
def test_another_file_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "chain"
    path.write_text(text)
    with pytest.raises(BrokenChain):
        run(path, [record(0)])
    assert path.read_text() == text
