"""The long round: each fault many times on a service of its own; writes docs/chaos.md and docs/chaos.json.

python -m tests.chaos.run                     # everything, some hours
python -m tests.chaos.run --scale 0.1         # a tenth of the rounds
python -m tests.chaos.run --only worker_killed --rounds 20
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from streams.kafka.local import LocalKafka
from tests.chaos.session import play

ROUNDS = {
    "worker_killed": 100,
    "worker_gone": 10,
    "worker_stopped": 20,
    "workers_scaled": 20,
    "worker_frozen": 10,
    "fresh_machine": 5,
    "broker_killed": 10,
    "broker_frozen": 10,
    "brokers_restarted": 10,
    "redis_killed": 10,
    "redis_frozen": 10,
}
DOCS = Path(__file__).parents[2] / "docs"
MEANING = {
    "worker_killed": "one of two workers killed −9 at a random moment, started again under its name",
    "worker_gone": "one of two workers killed −9, not replaced",
    "worker_stopped": "one of two workers stopped by SIGTERM, started again under its name",
    "workers_scaled": "workers 1 → 2 → 3 → 1, one killed −9, one stopped",
    "worker_frozen": "one of two workers frozen beyond its session, then continued",
    "fresh_machine": "the only worker and Redis killed −9, a worker of another name starts from nothing",
    "broker_killed": "a broker that leads partitions killed −9, back after 8 s",
    "broker_frozen": "a broker that leads partitions frozen for 20 s",
    "brokers_restarted": "all three brokers restarted in turn",
    "redis_killed": "Redis killed, back after 2 s, empty",
    "redis_frozen": "Redis frozen for 20 s",
}


async def sessions(rounds: dict[str, int], arguments: argparse.Namespace) -> dict[str, Any]:
    """Play each fault on a fresh cluster."""
    found = {}
    for fault, count in rounds.items():
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, LocalKafka(brokers=3) as kafka:
            options = {
                "per_second": arguments.rate,
                "routers": arguments.routers,
                "seed": arguments.seed,
                "session": arguments.session,
            }
            outcome = await play(kafka, Path(folder), [fault] * count, **options)
        found[fault] = outcome.as_json() | {"seconds": round(time.monotonic() - started)}
        one = found[fault]
        print(json.dumps({"fault": fault, **one["faults"].get(fault, {}), "clean": one["clean"], "lost": one["lost"]}), flush=True)
        if not outcome.clean:
            print(json.dumps([outcome.violations, outcome.examples, outcome.differences], default=str), flush=True)
        (arguments.docs / "chaos.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (arguments.docs / "chaos.md").write_text(report(found, arguments), encoding="utf-8")
    return found


def report(found: dict[str, Any], arguments: argparse.Namespace) -> str:
    """Return the report as Markdown."""
    lines = [
        "# Chaos: what was broken, and what came of it",
        "",
        f"{arguments.rate:g} requests/s with their bills and labels over {arguments.routers} routers of both profiles, three Kafka "
        f"brokers (replication 3), one Redis and the workers on {os.cpu_count()} cores ({platform.system()}). Always on: 5 % of "
        "events malformed, 5 % sent twice, 5 % out of order, 1 % of bills and labels missing. Each row ran on a service of its own "
        "and ended with `pbstream audit` and with a comparison of every byte of the state with a fresh recomputation.",
        "",
        f"Made by `python -m tests.chaos.run {' '.join(sys.argv[1:])}`. Mean load of the machine at the end: "
        f"{os.getloadavg()[2]:.1f}; figures of a machine that others use as well are worth less.",
        "",
        "Wait: how long a request to a partition of the worker that was hit (of any, where brokers or Redis were) waited for its "
        "decision at most; elsewhere: a request to any other partition; in calm: before the fault. Recovery: from the end of the "
        "fault until every partition has decided again. All in seconds, p50 / max over the rounds. Twice: decisions that appeared "
        "again, identically. Lost: decisions/bills/rewards/dead letters. Broken: violations found by the audit, and pieces of "
        "state that differ.",
        "",
        "| fault | rounds | requests | wait | elsewhere | in calm | recovery | twice | lost | broken |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for fault, one in found.items():
        shown = one["faults"].get(fault)
        if shown is None:
            continue
        lost = "/".join(str(one["lost"][name]) for name in ("decisions", "bills", "rewards", "dead_letters"))
        two_workers = shown["elsewhere_max"] > 0.0
        elsewhere = f"{shown['elsewhere_p50']} / {shown['elsewhere_max']}" if two_workers else "–"
        broken = sum(one["violations"].values()) + len(one["differences"])
        lines.append(
            f"| {MEANING[fault]} | {shown['rounds']} | {one['requests']:,} | {shown['wait_p50']} / {shown['wait_max']} "
            f"| {elsewhere} | {shown['calm_max']} "
            f"| {shown['recovery_p50']} / {shown['recovery_max']} | {shown['duplicates']} | {lost} | {broken} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run, write the report, and return 1 if anything was lost or broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="rounds of every fault")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual rounds")
    parser.add_argument("--only", action="append", choices=ROUNDS, help="this fault; may be given again")
    parser.add_argument("--rate", type=float, default=100.0, help="requests per second")
    parser.add_argument("--routers", type=int, default=64)
    parser.add_argument("--session", type=float, default=15.0, help="PB_SESSION_TIMEOUT of the workers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the report goes")
    arguments = parser.parse_args()
    usual = {fault: max(1, round(count * arguments.scale)) for fault, count in ROUNDS.items()}
    rounds = {fault: arguments.rounds or count for fault, count in usual.items() if not arguments.only or fault in arguments.only}
    found = asyncio.run(sessions(rounds, arguments))
    return 0 if all(one["clean"] for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
