"""Run a whole audit, partition by partition, so that memory is bounded by the largest one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from schemas.topic_roles import SOURCES
from streams.partitioner import partition_of
from streams.priors.references import blocking_prior_reader
from streams.settings import Settings
from studies.audit.answers import AnswerCheck
from studies.audit.declarations_in_force import check_declarations, check_published
from studies.audit.feedback_booked import FeedbackCheck
from studies.audit.findings import Findings, Kind
from studies.audit.learned import LearnedCheck, StateContexts
from studies.audit.pool_sums import PoolCheck
from studies.audit.recovered_state import Letters, gather, read_letters
from studies.audit.refusals_published import RefusalCheck
from studies.audit.served import check_served
from studies.audit.topic_reading import Progress, Topics
from studies.history.rerun import Rerun
from studies.history.skipped import Skipped


@dataclass(slots=True)
class Strays:
    """Events on a partition that is not their router's, and their forwarded copies."""

    sent: Counter[tuple[str, str, str]]
    arrived: Counter[tuple[str, str, str]]


def audit(
    topics: Topics,
    settings: Settings,
    *,
    now: float | None = None,
    tell: Callable[[int], None] = lambda read: None,
) -> Findings:
    """Check everything that the topics of a service can prove.

    Args:
        settings: prefix, partitions, ranks of sources and priors as the workers have them.
        now: time at which the topics were read, seconds since the epoch. None: they were read long
            ago, so it is not checked whether workers answer.
        tell: function that is called now and then with the number of records read so far.
    """
    findings, read = Findings(), Progress(topics, tell)
    letters = read_letters(topics, read, findings, prefix=settings.prefix)
    refusals = RefusalCheck(topics, read, findings)
    strays, pools = Strays(Counter(), Counter()), PoolCheck(findings)
    for number in topics.partitions():
        _audit_partition(
            number, topics, read, letters, refusals, findings, strays, pools, settings, now
        )
    pools.run()
    # Counted over all partitions: a stray leaves one and arrives on another.
    for place, count in (strays.sent - strays.arrived).items():
        topic, router_id, request_id = place
        where = f"{topic} router {router_id} request {request_id}"
        home = partition_of(router_id, partitions=settings.partitions)
        if topics.begin(topic, home) > 0:
            findings.unprovable("strays", where, "retention may have taken what was sent on")
        else:
            findings.violation(Kind.STRAY_LOST, where, f"{count} not sent on")
    for (topic, number), offsets in letters.items():
        known = topic in SOURCES and number in topics.partitions()
        beyond = [offset for offset in offsets if not known or offset >= topics.end(topic, number)]
        if beyond:
            where = f"{topic}-{number} offset {beyond[0]}"
            findings.violation(
                Kind.LETTER_UNFOUNDED,
                where,
                f"{len(beyond)} dead letters of events that are not on the log",
            )
    return findings


def _audit_partition(
    number: int,
    topics: Topics,
    read: Progress,
    letters: Letters,
    refusals: RefusalCheck,
    findings: Findings,
    strays: Strays,
    pools: PoolCheck,
    settings: Settings,
    now: float | None,
) -> None:
    home_of = partial(partition_of, partitions=settings.partitions)
    evidence = gather(
        number, read, letters, findings, names={settings.topic(name): name for name in SOURCES}
    )
    if evidence is None:
        return
    pools.add(evidence, read)
    ends = check_declarations(evidence, read, findings, partition_of=home_of)
    answers = AnswerCheck(evidence, findings, ends=ends, partition_of=home_of).run(
        read, begins_at=topics.begin("requests", number)
    )
    # If a router had several lives, the topics hold more than the last one's sums.
    gone = set(ends.gone) | {
        router_id for router_id, each in answers.incarnations.items() if len(each) > 1
    }
    complete = topics.begin("costs", number) == 0 and topics.begin("rewards", number) == 0
    FeedbackCheck(
        evidence, answers, findings, partition_of=home_of, rank_of=settings.source_rank
    ).run(read, gone=gone, ends=ends, complete=complete)
    refusals.run(evidence)
    strays.sent += answers.strays
    strays.arrived += answers.forwarded
    check_published(evidence, read, findings)
    skipped = Skipped()
    rerun = Rerun(
        contexts=StateContexts(evidence),  # type: ignore[arg-type]
        rank_of=settings.source_rank,
        read_prior=blocking_prior_reader(settings.priors_path),
        skipped=skipped,
    )
    LearnedCheck(evidence, findings).run(read, rerun, skipped)
    if now is not None:
        check_served(evidence, findings, now=now)
