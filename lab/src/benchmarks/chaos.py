"""Play the long round of chaos: each fault many times, with a fresh service for every ten faults.

The report is lab/docs/chaos.md and lab/docs/chaos.json.

    python -m benchmarks.chaos                     # everything, two hours or more.
    python -m benchmarks.chaos --scale 0.1         # a tenth of the rounds.
    python -m benchmarks.chaos --only worker_killed=20 --only redis_killed=2 --together
    python -m benchmarks.chaos --only worker_killed=20 --add   # more than the report has.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.report import signed
from tests.chaos.network import chaotic
from tests.chaos.session import play

ROUNDS = {
    "worker_killed": 100,
    "worker_gone": 10,
    "worker_stopped": 20,
    "rolling_restart": 10,
    "workers_scaled": 20,
    "worker_frozen": 10,
    "worker_cut_off": 10,
    "owner_fenced": 10,
    "fresh_machine": 5,
    "broker_killed": 10,
    "broker_frozen": 10,
    "brokers_restarted": 10,
    "acks_held": 10,
    "acks_lost": 10,
    "acks_refused": 10,
    "redis_killed": 10,
    "redis_frozen": 10,
}
FAULTS_AT_ONCE = 10
DOCS = Path(__file__).parents[2] / "docs"
MEANING = {
    "worker_killed": "one of two workers killed −9 at a random moment, "
    "started again under its name",
    "worker_gone": "one of two workers killed −9, not replaced",
    "worker_stopped": "one of two workers stopped by SIGTERM, started again under its name",
    "rolling_restart": (
        "three workers stopped by SIGTERM and started again under their names, one after the other"
    ),
    "workers_scaled": "workers 1 → 2 → 3 → 1, one killed −9, one stopped",
    "worker_frozen": "one of two workers frozen beyond its session, then continued",
    "worker_cut_off": "one of two workers cut off from all brokers beyond its session",
    "owner_fenced": "one of two workers fenced, as by another owner of a partition",
    "fresh_machine": "the only worker and Redis killed −9, "
    "a worker of another name starts from nothing",
    "broker_killed": "a broker that leads partitions killed −9, back after 8 s",
    "broker_frozen": "a broker that leads partitions frozen for 20 s",
    "brokers_restarted": "all three brokers restarted in turn",
    "acks_held": "brokers write, and acknowledge 6 s late",
    "acks_lost": "brokers write, and connections end instead of an acknowledgement, for 6 s",
    "acks_refused": "brokers refuse changelog and decisions: all three must have them, and one was "
    "killed, back after 6 s",
    "redis_killed": "Redis killed, back after 2 s, empty",
    "redis_frozen": "Redis frozen for 20 s",
}


def services(rounds: dict[str, int], *, together: bool) -> list[list[str]]:
    """Return which faults each service suffers in turn: all of them, or ten alike."""
    if together:
        return [[fault for fault, count in rounds.items() for _ in range(count)]]
    return [
        [fault] * min(FAULTS_AT_ONCE, count - first)
        for fault, count in rounds.items()
        for first in range(0, count, FAULTS_AT_ONCE)
    ]


async def sessions(rounds: dict[str, int], arguments: argparse.Namespace) -> bool:
    """Play all faults and report after each service; what other runs have found of other faults
    stays in the report.

    Returns:
        Whether nothing was lost or broken.
    """
    kept = arguments.docs / "chaos.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if not arguments.add:
        found = {fault: ran for fault, ran in found.items() if fault not in rounds}
    clean = True
    for number, faults in enumerate(services(rounds, together=arguments.together)):
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, chaotic() as kafka:
            options = {
                "routers": arguments.routers,
                "session": arguments.session,
                "seed": arguments.seed + number,
            }
            outcome = await play(kafka, Path(folder), faults, per_second=arguments.rate, **options)
        clean &= outcome.clean
        ran = outcome.as_json() | {
            "command": "python -m benchmarks.chaos " + " ".join(sys.argv[1:]),
            "load": round(os.getloadavg()[1], 1),
            "rate": arguments.rate,
            "routers": arguments.routers,
            "session": arguments.session,
            "seconds": round(time.monotonic() - started),
        }
        print(json.dumps(ran), flush=True)
        for fault in dict.fromkeys(faults):
            mine = [one for one in ran["rounds"] if one["fault"] == fault]
            found.setdefault(fault, []).append(ran | {"rounds": mine})
        found = {fault: found[fault] for fault in ROUNDS if fault in found}
        kept.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (arguments.docs / "chaos.md").write_text(report(found), encoding="utf-8")
    return clean


def p50_max(rounds: list[dict[str, Any]], name: str) -> str:
    """Return median and maximum of what rounds measured, in seconds."""
    seconds = [one[name] for one in rounds]
    return f"{statistics.median(seconds):.1f} / {max(seconds):.1f}" if max(seconds) > 0.0 else "–"


def report(found: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = [
        "# Chaos: what was broken, and what came of it",
        "",
        "Requests at a steady pace with their bills and labels over routers of both profiles, "
        "three Kafka brokers (replication 3), "
        f"one Redis and the workers, all on {os.cpu_count()} cores ({platform.system()}). Always "
        "on: 5 % of events malformed, 5 % "
        "sent twice, 5 % out of order, 1 % of bills and labels missing. Each run ended with "
        "`pbstream audit` and with a comparison "
        "of every byte of the state with a fresh recomputation.",
        "",
        "Wait: how long a request to a partition of the worker that was hit (to any, where "
        "brokers or Redis were) waited for its "
        "decision at most; elsewhere: a request to any other partition; in calm: before the "
        "fault. Recovery: from the end of the "
        "fault until every partition has decided again. All in seconds, p50 / max over the "
        "rounds. Twice: decisions that appeared "
        "again, identically. Lost: decisions/bills/rewards/dead letters. Broken: violations "
        "found by the audit, and pieces of "
        "state that differ. Requests: of the run, which may have had several faults.",
        "",
        "Session: `PB_SESSION_TIMEOUT`. The rounds with 15 s are from before a stopping worker "
        "left its group, and before source topics had a path of their own; since then its "
        "default is 4 s.",
        "",
        (
            "| fault | session | rounds | requests | wait | elsewhere | in calm | recovery | "
            "twice | lost | broken |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    alike: dict[tuple[str, float], list[Any]] = {}
    for fault, ran in ((fault, ran) for fault, runs in found.items() for ran in runs):
        alike.setdefault((fault, ran["session"]), []).append(ran)
    for (fault, session), runs in alike.items():
        rounds = [one for ran in runs for one in ran["rounds"]]
        lost = "/".join(
            str(sum(ran["lost"][name] for ran in runs))
            for name in ("decisions", "bills", "rewards", "dead_letters")
        )
        broken = sum(sum(ran["violations"].values()) + len(ran["differences"]) for ran in runs)
        seconds = " | ".join(
            p50_max(rounds, name) for name in ("wait", "elsewhere", "calm", "recovery")
        )
        lines.append(
            f"| {MEANING[fault]} | {session:g} | {len(rounds)} | "
            f"{sum(ran['requests'] for ran in runs):,} | {seconds} "
            f"| {sum(one['duplicates'] for one in rounds)} | {lost} | {broken} |"
        )
    lines += ["", "The rounds were played by:", ""]
    every = [ran for runs in found.values() for ran in runs]
    for command in dict.fromkeys(ran["command"] for ran in every):
        mine = [ran for ran in every if ran["command"] == command]
        loads = sorted(ran["load"] for ran in mine)
        lines.append(
            f"- `{command}`: {mine[0]['rate']:g} requests/s, {mine[0]['routers']} routers, "
            "`PB_SESSION_TIMEOUT` "
            f"{mine[0]['session']:g}; load of the machine {loads[0]} to {loads[-1]}"
        )
    return signed("\n".join(lines) + "\n")


def main() -> int:
    """Run, write the report, and return 1 if anything was lost or broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, help="rounds of every fault")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual rounds")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        help="this fault, or FAULT=ROUNDS; may be given again",
    )
    parser.add_argument(
        "--together", action="store_true", help="all faults on one service, one after the other"
    )
    parser.add_argument(
        "--add",
        action="store_true",
        help="add to what the report has of these faults, instead of in its place",
    )
    parser.add_argument("--rate", type=float, default=100.0, help="requests per second")
    parser.add_argument("--routers", type=int, default=64)
    parser.add_argument(
        "--session", type=float, default=4.0, help="PB_SESSION_TIMEOUT of the workers"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the report goes")
    arguments = parser.parse_args()
    rounds = {
        fault: arguments.rounds or max(1, round(count * arguments.scale))
        for fault, count in ROUNDS.items()
    }
    if arguments.only:
        wanted = dict(item.partition("=")[::2] for item in arguments.only)
        if unknown := wanted.keys() - ROUNDS.keys():
            parser.error(f"no such fault: {', '.join(unknown)}; there are {', '.join(ROUNDS)}")
        rounds = {fault: int(count or rounds[fault]) for fault, count in wanted.items()}
    return 0 if asyncio.run(sessions(rounds, arguments)) else 1


if __name__ == "__main__":
    sys.exit(main())
