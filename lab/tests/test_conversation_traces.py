"""Traces of conversations that the benchmark plays: Mooncake's JSON lines, and CSV."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from benchmarks.conversation_worlds import Turn
from benchmarks.conversations import main, read_trace

# Blocks of 512 tokens; a prompt begins as the one before it in its conversation did.
REQUESTS = [
    {"timestamp": 0, "input_length": 1500, "output_length": 100, "hash_ids": [0, 1, 2]},
    {"timestamp": 1000, "input_length": 1400, "output_length": 50, "hash_ids": [0, 7, 8]},
    {"timestamp": 30000, "input_length": 2100, "output_length": 80, "hash_ids": [0, 1, 3, 4, 5]},
    {"timestamp": 90500, "input_length": 2600, "output_length": 20, "hash_ids": [0, 1, 3, 4, 6, 9]},
]


def test_requests_of_a_mooncake_trace_are_turns_of_conversations(tmp_path: Path) -> None:
    trace = tmp_path / "conversation_trace.jsonl"
    trace.write_text("".join(f"{json.dumps(one)}\n" for one in REQUESTS))
    assert read_trace(trace) == [
        Turn(0.0, "s0", 1500, 100),
        Turn(1.0, "s1", 1400, 50),
        Turn(30.0, "s0", 2100, 80),
        Turn(90.5, "s0", 2600, 20),
    ]


def test_the_benchmark_plays_a_trace(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    rows = [
        {
            "timestamp": 2000 * n,
            "input_length": 2000 + 600 * (n // 4),
            "output_length": 100,
            "hash_ids": [10 * (n % 4) + block for block in range(4 + n // 4)],
        }
        for n in range(40)
    ]
    trace.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    played = CliRunner().invoke(main, ["--mooncake", str(trace), "--worlds", "2"])
    assert played.exit_code == 0, played.output
    assert "oracle ahead: " in played.output
