"""Several runs of a benchmark become one table of a page."""

from __future__ import annotations

from benchmarks.stream_table import table

RUNS = [
    {"requests ÷ Faust echo": 4.0, "requests a second": 12_786.4, "MB with 10000 routers": 329.2},
    {"requests ÷ Faust echo": 6.0, "requests a second": 10_786.4, "MB with 10000 routers": 500.0},
    {"requests ÷ Faust echo": 5.0, "requests a second": 11_786.4, "of no page": 1.0},
]


def test_a_table_has_the_runs_their_spread_and_what_misses_its_floor() -> None:
    assert table(RUNS).splitlines() == [
        "| | run 1 | run 2 | run 3 | spread | floor; goal |",
        "| --- | --- | --- | --- | --- | --- |",
        "| requests a second | 12,786 | 10,786 | 11,786 | 17% |  |",
        "| requests ÷ Faust echo | **4** | 6 | 5 | 40% | 5; 8 |",
        "| MB with 10000 routers | 329 | **500** |  | 41% | 450; 300 |",
    ]
