"""Who may call, how often, and what is kept at hand."""

import hashlib

import pytest

from doors.gateway.api_keys import BadKeys, Keys, new_key
from doors.gateway.rate_limits import Allowance, Recent
from doors.gateway.serve import keys_of
from streams.settings import Settings
from streams.settings_problems import BadSettings


def test_a_new_key_opens_its_routers_and_no_others() -> None:
    key, line = new_key("judge", routers="acme.*,chat")
    keys = Keys.parse(f"# judges\n\n{line}  # since May\n")
    found = keys.check(f"Bearer {key}")
    assert found is not None and found.name == "judge" and key not in line
    assert [found.allows(router) for router in ("acme.chat", "chat", "acme", "chatty")] == [
        True,
        True,
        False,
        False,
    ]
    assert hashlib.sha256(key.encode()).hexdigest() in line


def test_other_keys_open_nothing() -> None:
    key, line = new_key("judge", routers="*")
    other, _ = new_key("judge", routers="*")
    stranger, _ = new_key("stranger", routers="*")
    keys = Keys.parse(line)
    wrong = [
        "",
        "Bearer",
        f"Basic {key}",
        f"Bearer {key}x",
        f"Bearer {key[:-1]}",
        f"Bearer {other}",
        f"Bearer {stranger}",
        key,
    ]
    wrong += [f"Bearer {line.split(':')[1][:64]}", "Bearer pbk_judge_", "Bearer pbk_judge_\udcff"]
    assert [presented for presented in wrong if keys.check(presented)] == []
    assert keys.check(f"bearer  {key} ") is not None


@pytest.mark.parametrize(
    "text", ["judge", "judge sha256:12 *", "a b c d", "judge md5:" + "0" * 64 + " *"]
)
def test_a_line_that_is_no_key_is_named_without_what_stands_there(text: str) -> None:
    with pytest.raises(BadKeys, match="line 2") as error:
        Keys.parse(f"\n{text}")
    assert text not in str(error.value)


def test_a_name_stands_once() -> None:
    _, line = new_key("judge", routers="*")
    with pytest.raises(BadKeys, match="again"):
        Keys.parse(f"{line}\n{line}")


@pytest.mark.parametrize(
    ("name", "routers"),
    [("", "*"), ("a b", "*"), ("judge", ""), ("judge", "a b"), ("judge\n", "*")],
)
def test_a_key_without_name_or_routers_is_not_made(name: str, routers: str) -> None:
    with pytest.raises(BadKeys):
        new_key(name, routers=routers)


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.168.1.7", "gateway.example"])
def test_without_keys_it_does_not_start_where_others_can_call(bind: str) -> None:
    with pytest.raises(BadSettings, match="no API keys"):
        keys_of(Settings(gateway_bind=bind))
    with pytest.raises(BadSettings, match="no API keys"):
        keys_of(Settings(gateway_bind=bind, gateway_keys="# none yet\n"))
    _, line = new_key("judge", routers="*")
    assert keys_of(Settings(gateway_bind=bind, gateway_keys=line))


@pytest.mark.parametrize("bind", ["127.0.0.1", "::1", "localhost", "127.8.9.1"])
def test_on_loopback_no_keys_are_needed(bind: str) -> None:
    assert keys_of(Settings(gateway_bind=bind)) is None


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_allowance_refills_and_belongs_to_one_caller() -> None:
    clock = Clock()
    allowance = Allowance(10.0, burst=20.0, clock=clock)
    assert allowance.take("a", 20) == 0.0
    assert allowance.take("a", 1) == pytest.approx(0.1)
    assert allowance.take("b", 1) == 0.0
    clock.now = 0.1
    assert allowance.take("a", 1) == 0.0
    clock.now = 1e6
    assert [allowance.take("a", 15), allowance.take("a", 5)] == [0.0, 0.0]
    assert allowance.take("a", 1) > 0.0


def test_more_than_fits_is_taken_when_all_is_there_and_paid_off() -> None:
    clock = Clock()
    allowance = Allowance(10.0, burst=20.0, clock=clock)
    assert allowance.take("a", 50) == 0.0
    clock.now = 3.0
    assert allowance.take("a", 0) == 0.0
    assert allowance.take("a", 1) > 0.0
    clock.now = 3.1
    assert allowance.take("a", 1) == 0.0


def test_recent_decisions_stay_within_their_bytes_and_keep_the_first_answer() -> None:
    recent = Recent(10)
    recent.put(("a", "1"), b"first", repeat=False)
    recent.put(("a", "1"), b"again", repeat=True)
    assert recent.get(("a", "1")) == b"first"
    recent.put(("a", "2"), b"second", repeat=True)
    assert (recent.get(("a", "1")), recent.get(("a", "2"))) == (None, b"second")
    recent.put(("a", "3"), b"x" * 11, repeat=False)
    assert recent.get(("a", "3")) is None
