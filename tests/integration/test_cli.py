"""The command line against a real worker on a real broker."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from aiokafka import AIOKafkaProducer

from commands.broker.wire import answers, free_ports
from streams.settings import Settings
from tests.integration.commands import (
    CONTEXT,
    PRICES,
    add_two,
    done,
    done_json,
    run,
    until,
    variables_of,
)
from tests.integration.forked import programs

ROOT = Path(__file__).parents[2]


def test_a_routers_life_models_request_cost_reward_explain_watch(worker: Settings) -> None:
    add_two(worker, "life")
    state = done_json(worker, "budget", "set", "0.001", router="life")
    assert state["budget_usd_per_request"] == 0.001
    decision = done_json(
        worker, "request", "--context", "-", "--id", "q-1", stdin=CONTEXT, router="life"
    )
    assert (decision["request_id"], decision["seq"], decision["repeat"]) == ("q-1", 1, False)
    assert {candidate["model"] for candidate in decision["candidates"]} == {"small", "large"}
    paid = done_json(worker, "cost", "q-1", "0.00031", router="life")
    assert (paid["state"]["settled"], paid["state"]["spend_usd"]) == (1, 0.00031)
    rewarded = done_json(worker, "reward", "q-1", "0.9", "--source", "judge", router="life")
    assert rewarded["state"]["rewards_applied"] == 1
    told = done(worker, "explain", "q-1", router="life")
    assert f"→ {decision['model']}" in told
    assert "Cost: $0.00031." in told
    assert "Reward: 0.9 by judge." in told
    found = done_json(worker, "explain", "q-1", router="life")
    assert found["decision"] == decision
    seen = done_json(worker, "watch", "--once", router="life")
    assert (seen["shares"], seen["mean_reward"]) == ({decision["model"]: 1.0}, 0.9)
    assert seen["spend_per_budget"] == pytest.approx(0.31)
    assert "mean reward" in done(worker, "watch", "--once", router="life")
    assert "0.310" in done(worker, "budget", "show", router="life")


def test_explain_tells_of_a_router_that_was_typed_wrongly(worker: Settings) -> None:
    add_two(worker, "typed")
    for router_id, told in (("typde", "did you mean 'typed'"), ("typed", "no decision for 'q'")):
        refused = run(worker, "explain", "q", router=router_id)
        assert refused.exit_code == 1 and told in refused.output


def test_a_bill_in_tokens_is_explained_in_dollars_at_the_prices_of_the_decision(
    worker: Settings,
) -> None:
    add_two(worker, "tokens")
    asked = ("request", "--context", "-", "--id", "t", "--allowed", "small")
    done_json(worker, *asked, stdin=CONTEXT, router="tokens")
    reprice = ("models", "reprice", "small", "--input-price", "9", "--output-price", "9")
    done(worker, *reprice, router="tokens")
    done(worker, "cost", "t", "--input-tokens", "12", "--output-tokens", "310", router="tokens")
    told = done(worker, "explain", "t", router="tokens")
    assert "Cost: $0.0001252 for 12 input and 310 output tokens." in told
    (bill,) = done_json(worker, "explain", "t", router="tokens")["costs"]
    assert bill["priced_usd"] == pytest.approx(0.0001252)
    assert done_json(worker, "budget", "show", router="tokens")["spend_usd"] == bill["priced_usd"]
    run(worker, "cost", "t", "--input-tokens", "12", "--output-tokens", "310", router="tokens")
    first, second = (
        line
        for line in done(worker, "explain", "t", router="tokens").splitlines()
        if line.startswith("Cost: ")
    )
    assert ("changed nothing" in first, "changed nothing" in second) == (False, True)


def test_a_models_cache_and_offers_a_session_and_the_end_of_a_call_are_said(
    worker: Settings,
) -> None:
    add_two(worker, "offers")
    fields = ("cached_input_price_per_m=0.1", "offers.vision=true", "offers.regions=[eu]")
    eyes = ("models", "add", "eyes", "--input-price", "1", "--output-price", "4")
    wrong = run(worker, *eyes, "--field", "offers.visoin=true", router="offers")
    assert wrong.exit_code == 1
    assert "models.eyes.offers.visoin: no such field; did you mean vision?" in wrong.output
    done(worker, *eyes, *(word for field in fields for word in ("--field", field)), router="offers")
    declared = done_json(worker, "models", "list", router="offers")["eyes"]
    assert declared["cached_input_price_per_m"] == 0.1
    assert declared["offers"] == {"vision": True, "regions": ["eu"]}

    asked = ("request", "--context", "-", "--session", "talk", "--allowed", "eyes")
    done(worker, *asked, "--id", "t-1", "--needs", "vision", stdin=CONTEXT, router="offers")
    done(worker, *asked, "--id", "t-2", stdin=CONTEXT, router="offers")
    tokens = ("--input-tokens", "1000", "--cached-tokens", "900", "--output-tokens", "100")
    done(worker, "cost", "t-1", *tokens, "--latency", "812", router="offers")
    done(worker, "cost", "t-2", "0", "--status", "timeout", router="offers")
    judged = done_json(worker, "reward", "talk", "1", "--session", router="offers")
    assert judged["state"]["rewards_applied"] == 2
    first, second = (done_json(worker, "explain", id, router="offers") for id in ("t-1", "t-2"))
    assert first["costs"][0]["latency_ms"] == 812
    assert first["costs"][0]["priced_usd"] == pytest.approx((100 * 1 + 900 * 0.1 + 100 * 4) / 1e6)
    assert second["costs"][0]["status"] == "timeout"


def test_an_image_alone_goes_to_a_model_that_sees_whatever_dots_its_name_has(
    worker: Settings,
) -> None:
    add_two(worker, "images")
    done(worker, "models", "add", "gpt-4.1", *PRICES, router="images")
    path = "models.gpt-4.1.offers.vision=true"
    done(worker, "routers", "set", "images", path, "models.small.offers.tools=true")
    done(worker, "routers", "set", "images", 'models."large".offers.tools=true')
    decision = done_json(worker, "request", "--needs", "vision", "--id", "i", router="images")
    assert decision["model"] == "gpt-4.1"
    assert "decided on the mean context" in done(worker, "explain", "i", router="images")


def test_the_same_request_again_gets_the_same_answer(worker: Settings) -> None:
    add_two(worker, "again")
    first, second = (
        done_json(worker, "request", "--context", "-", "--id", "q", stdin=CONTEXT, router="again")
        for _ in range(2)
    )
    assert (first["repeat"], second["repeat"]) == (False, True)
    assert (first["model"], first["seq"], first["decided_at"]) == (
        second["model"],
        second["seq"],
        second["decided_at"],
    )


def test_prices_change_and_models_leave(worker: Settings) -> None:
    add_two(worker, "moving")
    done(
        worker,
        "models",
        "reprice",
        "large",
        "--input-price",
        "0.6",
        "--output-price",
        "5",
        router="moving",
    )
    done(worker, "models", "remove", "small", router="moving")
    assert done_json(worker, "models", "list", router="moving") == {
        "large": {"input_price_per_m": 0.6, "output_price_per_m": 5.0}
    }
    assert (
        done_json(worker, "request", "--context", "-", stdin=CONTEXT, router="moving")["model"]
        == "large"
    )
    missing = run(worker, "models", "reprice", "small", *PRICES, router="moving")
    assert missing.exit_code == 1
    assert "its models: large" in missing.output


def test_a_variant_and_the_end_of_a_model_are_declared_and_listed(worker: Settings) -> None:
    add_two(worker, "thinks")
    variant = ("--variant-of", "large", "--params", '{"reasoning_effort": "low"}')
    end = ("--retires-at", "03/31/2027", "--field", 'answers_as=["lowly"]')
    done(worker, "models", "add", "low", *PRICES, *variant, *end, router="thinks")
    found = done_json(worker, "models", "list", router="thinks")["low"]
    assert found == {
        "input_price_per_m": 0.1,
        "output_price_per_m": 0.4,
        "variant_of": "large",
        "params": {"reasoning_effort": "low"},
        "retires_at": "2027-03-31",
        "answers_as": ["lowly"],
    }
    asked = ("request", "--context", "-", "--id", "v", "--allowed", "low")
    decision = done_json(worker, *asked, stdin=CONTEXT, router="thinks")
    assert (decision["variant_of"], decision["params"]) == ("large", {"reasoning_effort": "low"})
    done(worker, "cost", "v", "0.01", "--answered-by", "LOWLY", router="thinks")
    told = done(worker, "explain", "v", router="thinks")
    assert "To be called as large with" in told and "answered by LOWLY" in told
    again = run(worker, "models", "add", "same", *PRICES, *variant, router="thinks")
    assert again.exit_code == 1 and "same call" in again.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--params", "[1]"), "not a JSON object"),
        (("--params", '{"a": 1, "a": 2}'), "a key is there twice"),
        (("--params", '{"a": NaN}'), "NaN is not a number"),
        (("--params", "{"), "not JSON"),
        (("--retires-at", "next year"), "not a date"),
    ],
)
def test_what_is_no_variant_is_refused_before_anything_is_sent(
    words: tuple[str, str], told: str, cli_settings: Settings
) -> None:
    refused = run(cli_settings, "models", "add", "m", *PRICES, *words, router="nobody")
    assert refused.exit_code == 2 and told in " ".join(refused.output.split())


def test_changes_at_the_same_time_are_all_kept(worker: Settings) -> None:
    add_two(worker, "busy")

    def add(name: str) -> int:
        command = [
            str(programs() / "pbstream"),
            "models",
            "add",
            name,
            *PRICES,
            "--router",
            "busy",
            "--timeout",
            "60",
        ]
        return subprocess.run(
            command, env={**os.environ, **variables_of(worker)}, cwd=ROOT, check=False
        ).returncode

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(add, ("a", "b", "c"))) == [0, 0, 0]
    assert set(done_json(worker, "models", "list", router="busy")) == {
        "small",
        "large",
        "a",
        "b",
        "c",
    }


def test_a_refused_declaration_is_explained_and_does_not_block_the_next(worker: Settings) -> None:
    add_two(worker, "refusing")
    refused = run(worker, "models", "add", "odd", *PRICES, "--like", "nobody", router="refusing")
    assert refused.exit_code == 1
    assert "invalid_config" in refused.output
    done(worker, "budget", "set", "0.002", router="refusing")
    assert set(done_json(worker, "models", "list", router="refusing")) == {"small", "large"}


def test_a_budget_can_be_taken_away(worker: Settings) -> None:
    add_two(worker, "free")
    done(worker, "budget", "set", "0.002", router="free")
    assert (
        done_json(worker, "budget", "set", "none", router="free")["budget_usd_per_request"] is None
    )


@pytest.mark.parametrize(
    ("options", "stdin", "reason"),
    [
        ((), "[1, 1]", "wrong_context"),
        (("--allowed", "nobody"), CONTEXT, "no_allowed_model"),
        (("--max-price", "0"), CONTEXT, "no_affordable_model"),
    ],
)
def test_a_refused_request_says_why_and_what_to_do(
    worker: Settings, options: tuple[str, ...], stdin: str, reason: str
) -> None:
    done(
        worker,
        "models",
        "add",
        f"model-{reason}",
        *PRICES,
        "--dimensions",
        "3",
        router=f"strict.{reason}",
    )
    result = run(
        worker, "request", "--context", "-", *options, stdin=stdin, router=f"strict.{reason}"
    )
    assert result.exit_code == 1
    assert f"was refused, {reason}" in result.output


def test_an_undeclared_router_is_named_with_the_command_that_declares_it(worker: Settings) -> None:
    asked = run(worker, "request", "--context", "-", stdin=CONTEXT, router="nobody")
    assert asked.exit_code == 1
    assert "unknown_router" in asked.output
    for words in (
        ("budget", "set", "1"),
        ("budget", "show"),
        ("models", "list"),
        ("watch", "--once"),
    ):
        result = run(worker, *words, router="nobody")
        assert result.exit_code == 1
        assert "pbstream models add" in result.output


def test_routers_are_listed_until_they_go(worker: Settings) -> None:
    add_two(worker, "leaving")
    rows = {row["router_id"]: row["models"] for row in done_json(worker, "routers", "list")}
    assert rows["leaving"] == 2
    done(worker, "routers", "remove", "--yes", router="leaving")
    assert "leaving" not in {row["router_id"] for row in done_json(worker, "routers", "list")}


def test_a_bill_of_an_unknown_request_is_sent_and_said_to_wait(worker: Settings) -> None:
    add_two(worker, "orphan")
    assert "not known (yet)" in done(worker, "cost", "never-asked", "0.001", router="orphan")


def test_an_unknown_request_cannot_be_explained(worker: Settings) -> None:
    add_two(worker, "unasked")
    result = run(worker, "explain", "never-asked", router="unasked")
    assert result.exit_code == 1
    assert "no decision for 'never-asked'" in result.output


def test_priors_are_fitted_and_a_model_starts_from_them(worker: Settings, tmp_path: Path) -> None:
    (tmp_path / "judged.jsonl").write_text(judged(40))
    assert worker.priors_path is not None
    fitted = worker.priors_path / "narrow"
    summary = done_json(
        worker, "fit", str(tmp_path / "judged.jsonl"), str(fitted), "--components", "2"
    )
    assert (summary["prompts"], summary["dimensions"]) == (40, 3)
    done(
        worker,
        "models",
        "add",
        "large",
        *PRICES,
        "--prior",
        str(fitted),
        "--n-eff",
        "50",
        router="warm",
    )
    assert "n_eff 50" in done(worker, "models", "list", router="warm")
    decision = done_json(
        worker, "request", "--context", "-", stdin="[0.0, 0.0, 1.0]", router="warm"
    )
    assert decision["reason"] == "ucb"
    assert decision["expected_reward"] == pytest.approx(0.9, abs=0.05)
    assert decision["expected_cost_usd"] == pytest.approx(0.002, rel=0.01)
    declared = done_json(worker, "routers", "show", "warm")
    assert (declared["dimensions"], declared["projection"]["ref"]) == (3, "narrow")
    asked = done_json(
        worker, "request", "What is 3 plus 3?", "--id", "w", "--timeout", "60", router="warm"
    )
    assert asked["expected_reward"] == pytest.approx(0.9, abs=0.05)
    assert "are read (static, narrow)." in done(worker, "explain", "w", router="warm")


def test_without_a_worker_a_request_says_so_in_time(cli_settings: Settings) -> None:
    alone = cli_settings.model_copy(
        update={"prefix": f"alone-{uuid4().hex[:8]}.", "app_id": f"alone-{uuid4().hex[:8]}"}
    )
    missing = run(alone, "request", "hello")
    assert missing.exit_code == 1
    assert "pbstream topics create" in missing.output
    assert "created" in done(alone, "topics", "create")
    assert done_json(alone, "topics", "create")["created"] == []
    assert "as a worker needs them" in done(alone, "topics", "check")
    assert "add a first model with `pbstream models add NAME" in done(alone, "routers", "list")
    assert done_json(alone, "routers", "list") == []
    result = run(alone, "request", "hello", "--timeout", "0.5")
    assert result.exit_code == 1
    assert "no worker answered within 0.5 s: is `pbstream worker` running, with" in result.output
    assert "/readyz" in result.output


def test_ingest_names_a_topic_that_is_not_there_at_once(worker: Settings) -> None:
    away = f"away-{uuid4().hex[:8]}."
    missing = run(worker, "ingest", f"{away}payloads", "--from", "otel")
    assert missing.exit_code == 1 and "Unclosed" not in missing.output
    assert f"topic '{away}payloads' does not exist on {worker.bootstrap}" in missing.output
    elsewhere = worker.model_copy(update={"prefix": away})
    unwritable = run(elsewhere, "ingest", worker.topic("alerts"), "--from", "otel")
    assert unwritable.exit_code == 1
    assert f"topics {away}costs, {away}rewards, {away}dlq do not exist" in unwritable.output


def test_broker_starts_a_real_kafka_prints_the_export_line_and_stops_on_sigint() -> None:
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "commands.cli", "broker", "--port", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    ) as broker:
        try:
            assert broker.stdout is not None
            assert broker.stdout.readline() == f"export PB_BOOTSTRAP=127.0.0.1:{port}\n"
            assert answers(f"127.0.0.1:{port}")
            broker.send_signal(signal.SIGINT)
            assert broker.wait(30) == 0
        finally:
            broker.kill()
    assert not answers(f"127.0.0.1:{port}")


def test_broker_ends_with_kafkas_last_words_when_its_jvm_is_killed(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "commands.cli", "broker", "--port", str(port)]
    with subprocess.Popen(
        [*command, "--data", str(tmp_path)], stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as broker:
        try:
            assert broker.stderr is not None
            assert "Kafka is ready" in next(line for line in broker.stderr if "ready" in line)
            (log,) = tmp_path.rglob("kafka.log")
            with log.open("a") as file:
                file.write("what it said last\n")
            (jvm,) = psutil.Process(broker.pid).children()
            jvm.kill()
            assert broker.wait(60) == 1
            said = broker.stderr.read()
        finally:
            broker.kill()
    assert f"Kafka node 1 on 127.0.0.1:{port} was ended by SIGKILL" in said
    assert "what it said last" in said and "Traceback" not in said


def judged(count: int) -> str:
    """Return lines of prompts that were judged and billed."""
    known = {"rewards": {"small": 0.5, "large": 0.9}, "costs": {"small": 0.00003, "large": 0.002}}
    lines = [{"prompt": f"What is {n} plus {n % 7}?", **known} for n in range(count)]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def test_the_client_of_the_readme_works(worker: Settings, tmp_path: Path) -> None:
    (code,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    (tmp_path / "client.py").write_text(code)
    declared = run(worker, "models", "add", "for-the-client", *PRICES)
    assert declared.exit_code == 0, declared.output
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "client.py")],
        env={**os.environ, **variables_of(worker)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("call ")
    assert ran.stderr == ""
    (tmp_path / "mistyped.py").write_text(code.replace('"default"', '"defualt"'))
    wrong = subprocess.run(
        [sys.executable, str(tmp_path / "mistyped.py")],
        env={**os.environ, **variables_of(worker)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("unknown_router: ")
    deadline = time.monotonic() + 60
    while done_json(worker, "budget", "show")["rewards_applied"] == 0:
        assert time.monotonic() < deadline


def test_budgets_of_a_period_are_set_shown_and_taken_away(worker: Settings) -> None:
    add_two(worker, "periods")
    zone = ("--timezone", "Europe/Berlin")
    state = done_json(worker, "budget", "set", "20", "--per", "month", *zone, router="periods")
    done(worker, "budget", "set", "2", "--per", "day", "--carry", "all", router="periods")
    declared = json.loads(done(worker, "routers", "show", "periods", "--json"))
    assert declared["budget"] == [
        {"usd": 20.0, "per": "month", "timezone": "Europe/Berlin"},
        {"usd": 2.0, "per": "day", "timezone": "Europe/Berlin", "carry": "all"},
    ]
    asked = ("request", "--context", "-", "--id", "one")
    done_json(worker, *asked, stdin=CONTEXT, router="periods")
    done(worker, "cost", "one", "0.5", router="periods")
    shown = done(worker, "budget", "show", router="periods")
    assert "$20 per month: $0.5 spent, $19.5 left" in shown
    assert "$2 per day: $0.5 spent, $1.5 left" in shown
    assert "Now: $2 per day: $0.5 spent, $1.5 left" in done(
        worker, "explain", "one", router="periods"
    )
    done(worker, "budget", "set", "none", "--per", "day", router="periods")
    left = done_json(worker, "budget", "show", router="periods")["budgets"]
    assert [(one["period"], one["charged_usd"]) for one in left] == [("month", 0.5)]
    assert [one["usd"] for one in state["budgets"]] == [20.0]
    fields = ("min_reward.of_best=0.98", "max_cost_per_request_usd=0.5", "when_spent=refuse")
    done(worker, "routers", "set", "periods", *fields)
    declared = json.loads(done(worker, "routers", "show", "periods", "--json"))
    assert (declared["min_reward"], declared["when_spent"]) == ({"of_best": 0.98}, "refuse")
    refused = run(worker, "budget", "set", "20000", router="periods")
    assert refused.exit_code == 2
    assert "--per month" in refused.output


async def _declare_pool(settings: Settings, event: dict[str, object]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap) as producer:
        key, value = str(event["pool_id"]).encode(), json.dumps(event).encode()
        await producer.send_and_wait(settings.topic("pools"), value, key=key)


def test_a_pool_lends_to_its_routers_and_it_adds_up(worker: Settings) -> None:
    for name in ("pool-a", "pool-b", "pool-c"):
        add_two(worker, name)
    done(worker, "pools", "set", "all", "30", "--per", "month", "--member", "pool-a=0.5-1")
    done(worker, "pools", "set", "rest", "--parent", "all")
    for name, pool in (("pool-a", "all"), ("pool-b", "rest"), ("pool-c", "rest")):
        assert f"in pool {pool}" in done(worker, "pools", "join", pool, router=name)

    def granted() -> dict[str, float]:
        shown = done_json(worker, "pools", "show", "all").get("all/month", {})
        return {name: one["usd"] for name, one in shown.get("routers", {}).items()}

    def shared_out() -> bool:
        # Members come one after another: each is granted what the pool has at that time.
        now = granted()
        return len(now) == 3 and now["pool-a"] >= 14.9 and sum(now.values()) > 29.0

    until(shared_out)
    assert sum(granted().values()) <= 30.0
    assert "are granted" in done(worker, "pools", "show")
    same = [{"usd": 7, "per": "day"}, {"usd": 9, "per": "day"}]
    asyncio.run(_declare_pool(worker, {"pool_id": "all", "budget": same}))
    assert list(done_json(worker, "pools", "show", "all")) == ["all/month"], "it was refused"
    state = done_json(worker, "budget", "show", router="pool-b")
    assert [(one["pool"], one["line"]) for one in state["budgets"]] == [("rest", "all/month")]
    assert "in no pool" in done(worker, "pools", "join", "none", router="pool-b")
    until(lambda: "pool-b" not in granted())
    assert "is gone" in done(worker, "pools", "remove", "rest")
    assert run(worker, "pools", "show", "rest").exit_code == 1
    refused = run(worker, "pools", "set", "all", "20")
    assert (refused.exit_code, "--per" in refused.output) == (2, True)
