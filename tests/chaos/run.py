"""The long round: each fault many times on a service of its own; writes docs/chaos.md and docs/chaos.json.

python -m tests.chaos.run                     # everything, some hours
python -m tests.chaos.run --scale 0.1         # a tenth of the rounds
python -m tests.chaos.run --only worker_killed=20 --only redis_killed=2 --together
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
    """Play each fault on a cluster of its own, or all on one; what other runs have found stays in the report."""
    kept = arguments.docs / "chaos.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    groups = [list(rounds)] if arguments.together else [[fault] for fault in rounds]
    for faults in groups:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, LocalKafka(brokers=3) as kafka:
            options = {name: getattr(arguments, name) for name in ("routers", "seed", "session")}
            sequence = [fault for fault in faults for _ in range(rounds[fault])]
            outcome = await play(kafka, Path(folder), sequence, per_second=arguments.rate, **options)
        one = outcome.as_json()
        ran = {"command": "python -m tests.chaos.run " + " ".join(sys.argv[1:]), "load": round(os.getloadavg()[1], 1)}
        ran |= {"rate": arguments.rate, "routers": arguments.routers, "session": arguments.session}
        ran |= {"seconds": round(time.monotonic() - started), "together": len(faults)}
        for fault in faults:
            row = {name: one[name] for name in ("requests", "lost", "violations", "differences", "evidence", "clean")}
            found[fault] = one["faults"].get(fault, {}) | row | ran
            print(json.dumps({"fault": fault} | found[fault]), flush=True)
        if not outcome.clean:
            print(json.dumps([outcome.violations, outcome.examples, outcome.differences], default=str), flush=True)
        found = {fault: found[fault] for fault in ROUNDS if fault in found}
        kept.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (arguments.docs / "chaos.md").write_text(report(found), encoding="utf-8")
    return {fault: found[fault] for fault in rounds}


def report(found: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = [
        "# Chaos: what was broken, and what came of it",
        "",
        "Requests at a steady pace with their bills and labels over routers of both profiles, three Kafka brokers (replication 3), "
        f"one Redis and the workers, all on {os.cpu_count()} cores ({platform.system()}). Always on: 5 % of events malformed, 5 % "
        "sent twice, 5 % out of order, 1 % of bills and labels missing. Each run ended with `pbstream audit` and with a comparison "
        "of every byte of the state with a fresh recomputation.",
        "",
        "Wait: how long a request to a partition of the worker that was hit (to any, where brokers or Redis were) waited for its "
        "decision at most; elsewhere: a request to any other partition; in calm: before the fault. Recovery: from the end of the "
        "fault until every partition has decided again. All in seconds, p50 / max over the rounds. Twice: decisions that appeared "
        "again, identically. Lost: decisions/bills/rewards/dead letters. Broken: violations found by the audit, and pieces of "
        "state that differ. Requests: of the run, which may have had several faults.",
        "",
        "| fault | rounds | requests | wait | elsewhere | in calm | recovery | twice | lost | broken |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for fault, one in found.items():
        if "wait_max" not in one:
            continue
        lost = "/".join(str(one["lost"][name]) for name in ("decisions", "bills", "rewards", "dead_letters"))
        elsewhere = f"{one['elsewhere_p50']} / {one['elsewhere_max']}" if one["elsewhere_max"] > 0.0 else "–"
        broken = sum(one["violations"].values()) + len(one["differences"])
        lines.append(
            f"| {MEANING[fault]} | {one['rounds']} | {one['requests']:,} | {one['wait_p50']} / {one['wait_max']} "
            f"| {elsewhere} | {one['calm_max']} | {one['recovery_p50']} / {one['recovery_max']} | {one['duplicates']} "
            f"| {lost} | {broken} |"
        )
    lines += ["", "Made by:", ""]
    for command in dict.fromkeys(one["command"] for one in found.values()):
        one = next(one for one in found.values() if one["command"] == command)
        lines.append(
            f"- `{command}`: {one['rate']:g} requests/s, {one['routers']} routers, `PB_SESSION_TIMEOUT` {one['session']:g}; "
            f"{one['seconds']} s, mean load of the machine at its end {one['load']}"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run, write the report, and return 1 if anything was lost or broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="rounds of every fault")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual rounds")
    parser.add_argument("--only", action="append", default=[], help="this fault, or FAULT=ROUNDS; may be given again")
    parser.add_argument("--together", action="store_true", help="all faults on one service, one after the other")
    parser.add_argument("--rate", type=float, default=100.0, help="requests per second")
    parser.add_argument("--routers", type=int, default=64)
    parser.add_argument("--session", type=float, default=15.0, help="PB_SESSION_TIMEOUT of the workers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the report goes")
    arguments = parser.parse_args()
    rounds = {fault: arguments.rounds or max(1, round(count * arguments.scale)) for fault, count in ROUNDS.items()}
    if arguments.only:
        wanted = dict(item.partition("=")[::2] for item in arguments.only)
        if unknown := wanted.keys() - ROUNDS.keys():
            parser.error(f"no such fault: {', '.join(unknown)}; there are {', '.join(ROUNDS)}")
        rounds = {fault: int(count or rounds[fault]) for fault, count in wanted.items()}
    found = asyncio.run(sessions(rounds, arguments))
    return 0 if all(one["clean"] for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
