"""One file for a router: what it declares, what it changes, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from commands.cli.router_change import field_of
from doors.console.document import faults
from doors.console.failures import Failure
from doors.console.router_file import as_yaml, changes, full_path, put, read_file, shown, value_of
from schemas import RouterDeclared, decode

MODEL = {"input_price_per_m": 0.1, "output_price_per_m": 1e-5}
ROUTER = {"router_id": "acme.chat", "models": {"small": MODEL}, "budget_usd_per_request": 6.62e-4}


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "chat.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_example_of_the_contract_is_the_same_after_writing_and_reading(
    tmp_path: Path,
) -> None:
    for example in RouterDeclared.model_json_schema()["examples"]:
        assert read_file(written(tmp_path, as_yaml(example))) == example


@given(
    number=st.floats(0, 1e6, allow_nan=False),
    name=st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1),
)
def test_any_number_and_any_name_survive(
    number: float, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    router = {"router_id": "r", "models": {name: {**MODEL, "input_price_per_m": number}}}
    assert read_file(written(tmp_path_factory.mktemp("any"), as_yaml(router))) == router


@pytest.mark.parametrize("number", ["1e-4", "0.0001", "1E-4", "1.0e-04", ".1e-3"])
def test_a_number_is_a_number_however_it_is_written(number: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"router_id: r\nmodels: {{}}\nbudget_usd_per_request: {number}\n")
    assert read_file(path)["budget_usd_per_request"] == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"bugdet_usd_per_request": 1.0},
            "bugdet_usd_per_request: no such field; did you mean budget_usd_per_request?",
        ),
        ({"models": {"small": {**MODEL, "price": 1}}}, "models.small.price: no such field"),
        (
            {"models": {"small": {**MODEL, "input_price_per_m": -1}}},
            "models.small.input_price_per_m: is -1; it must be at least 0",
        ),
        ({"models": {"small": {}}}, "models.small.output_price_per_m: is missing"),
        ({"models": {"": MODEL}}, 'models."": must have at least 1 character'),
        ({"caps": {"hour": {"usd": 0, "mode": "soft"}}}, "caps.hour.usd: is 0; it must be above 0"),
        ({"caps": {"week": {"usd": 1}}}, "caps.week: no such field"),
        (
            {"models": {"small": {**MODEL, "offers": {"tool": True}}}},
            "models.small.offers.tool: no such field; did you mean tools?",
        ),
        (
            {"models": {"small": {**MODEL, "prior": {"like": "large", "n_ef": 5}}}},
            "models.small.prior.n_ef: no such field; did you mean n_eff?",
        ),
        ({"budget": [{"usd": 5, "per": "day", "every": 1}]}, "budget.0.every: no such field"),
        ({"budget": {"usd": 5, "per": "day", "carri": "none"}}, "budget.carri: no such field"),
        ({"min_reward": {"of_bets": 1.0}}, "min_reward.of_bets: no such field"),
        ({"gamma": 2}, "gamma: is 2; it must be at most 1"),
        ({"router_id": "a b"}, "router_id: must match the pattern"),
        ({"epsilon": "much"}, "epsilon: is the text 'much'; it must be a number"),
        ({"epsilon": "0.1"}, "epsilon: is the text '0.1'; it must be a number"),
        ({"router_id": 7}, "router_id: is a whole number; it must be a text: put it in quotes"),
        ({"max_attempts": True}, "max_attempts: is true or false; it must be a whole number"),
        ({"when_spent": "cheap"}, "when_spent: must be 'cheapest', 'refuse' or 'overrun'"),
        ({"seed": 2**70}, "seed: is 1180591620717411303424; it must be at most"),
    ],
)
def test_every_fault_is_named_with_its_place(
    change: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(Failure) as raised:
        read_file(written(tmp_path, yaml.safe_dump({**ROUTER, **change})))
    assert says in raised.value.message


@pytest.mark.parametrize("number", [".nan", ".inf", "-.INF", "1e400", "010", "1:30", "2026-01-01"])
@pytest.mark.parametrize("field", ["gamma", "models.small.input_price_per_m", "caps.day.usd"])
def test_what_yaml_alone_takes_for_a_number_is_a_fault_of_its_field(
    field: str, number: str, tmp_path: Path
) -> None:
    document = orjson.loads(orjson.dumps({**ROUTER, "caps": {"day": {"usd": 1, "mode": "hard"}}}))
    put(document, field.split("."), "HERE")
    with pytest.raises(Failure) as raised:
        read_file(written(tmp_path, yaml.safe_dump(document).replace("HERE", number)))
    _, fault = raised.value.message.splitlines()
    assert fault.startswith(f"  {field}: is ") and fault.endswith("number")


@pytest.mark.parametrize("text", [".nan", "1e400"])
def test_a_value_on_the_command_line_that_is_not_finite_is_a_fault_and_removes_nothing(
    text: str,
) -> None:
    document = {**ROUTER}
    put(document, ["budget_usd_per_request"], value_of(text))
    assert [fault.partition(":")[0] for fault in faults(document)] == ["budget_usd_per_request"]


def test_a_date_needs_no_quotes(tmp_path: Path) -> None:
    text = yaml.safe_dump(ROUTER).replace("output", "retires_at: 2031-01-31\n    output")
    assert read_file(written(tmp_path, text))["models"]["small"]["retires_at"] == "2031-01-31"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("models:\n\tsmall: {}", "line 2, column 1: .*indent with spaces, not with tabs"),
        ("a:\n  b: 1\n c: 2", "line 3, column 2: .*lines of one level begin in the same column"),
        ("router_id:chat\nmodels: {}", "line 2, column 7: .*a blank behind the colon"),
        ('a: "b', "a quote is open"),
    ],
)
def test_what_is_no_yaml_is_named_with_what_to_do(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match=f"chat.yaml is not YAML of a router: .*{says}"):
        read_file(written(tmp_path, text))


@pytest.mark.parametrize(
    "text", ["", "- 1", "{", "a: !!python/object:os.system {}", "budget: .nan", "\x00"]
)
def test_what_is_no_file_of_a_router_is_said_to_be_none(text: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"chat\.yaml"):
        read_file(written(tmp_path, text))


def test_what_changes_is_named_leaf_by_leaf() -> None:
    after = {
        **ROUTER,
        "models": {"small": {**MODEL, "input_price_per_m": 0.2}, "large": MODEL},
        "alpha": 0.1,
    }
    found = {one["what"]: (one["before"], one["after"]) for one in changes(ROUTER, after)}
    assert found == {
        "models.small.input_price_per_m": (0.1, 0.2),
        "models.large.input_price_per_m": (None, 0.1),
        "models.large.output_price_per_m": (None, 1e-5),
        "alpha": (None, 0.1),
    }
    assert changes(ROUTER, {**ROUTER, "alpha": None}) == []
    assert "characters" in shown([0.1] * 1000)


def test_faults_agree_with_what_a_worker_refuses() -> None:
    assert faults(ROUTER) == []
    assert decode(RouterDeclared, orjson.dumps(ROUTER)).router_id == "acme.chat"


@pytest.mark.parametrize(
    ("path", "text", "after"),
    [
        ("alpha", "0.05", {"alpha": 0.05}),
        ("alpha", "5e-2", {"alpha": 0.05}),
        ("budget_usd_per_request", "", {"budget_usd_per_request": None}),
        ("caps.day.usd", "60", {"caps": {"day": {"usd": 60}}}),
        ("profile", "paper", {"profile": "paper"}),
    ],
)
def test_a_field_is_put_where_its_path_leads(path: str, text: str, after: dict[str, Any]) -> None:
    document = orjson.loads(orjson.dumps(ROUTER))
    put(document, path.split("."), value_of(text))
    assert document == {
        name: value for name, value in {**ROUTER, **after}.items() if value is not None
    }


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("models.gpt-4.1.offers.vision=true", ["models", "gpt-4.1", "offers", "vision"]),
        ("models.gpt-4.1=", ["models", "gpt-4.1"]),
        ('models."gpt-4.1".prior=', ["models", "gpt-4.1", "prior"]),
        ("models.us.claude-x-v1:0.prior=", ["models", "us.claude-x-v1:0", "prior"]),
        ("models.new-0.5.input_price_per_m=1", ["models", "new-0.5", "input_price_per_m"]),
        ('models."a=b.c".prior=', ["models", "a=b.c", "prior"]),
        ('models."gpt-4".prior=', ["models", "gpt-4", "prior"]),
        ("models.gpt-4.prior=", ["models", "gpt-4", "prior"]),
        ("models.small.prior.n_eff=5", ["models", "small", "prior", "n_eff"]),
        ("caps.day.usd=60", ["caps", "day", "usd"]),
    ],
)
def test_a_model_whose_name_holds_dots_is_found(text: str, path: list[str]) -> None:
    document = {"models": {"gpt-4": {}, "gpt-4.1": {}, "us.claude-x-v1:0": {}}}
    assert full_path(document, field_of(text)[0]) == path


def test_what_is_left_empty_goes() -> None:
    document: dict[str, Any] = {"router_id": "r", "caps": {"day": {"usd": 1}}}
    put(document, ["caps", "day", "usd"], None)
    assert document == {"router_id": "r"}
    with pytest.raises(Failure, match="router_id has no fields"):
        put(document, ["router_id", "x"], 1)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"budget": [{"usd": 1, "per": "day", "timezone": "Mars/X"}]},
            "budget.0.timezone: is not an IANA time zone, for example Europe/Berlin",
        ),
        (
            {"budget": {"usd": 1, "per": "day", "carry": -1}},
            "budget.carry: is -1; it must be at least 0",
        ),
        ({"min_reward": 1.5}, "min_reward: is 1.5; it must be at most 1"),
        ({"min_reward": {"of_best": 2}}, "min_reward.of_best: is 2; it must be at most 1"),
    ],
)
def test_a_fault_stands_where_the_file_has_it(fields: dict[str, Any], said: str) -> None:
    assert faults({**ROUTER, **fields}) == [said]
