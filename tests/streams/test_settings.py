"""Settings: read once, refused with a line that says what to write."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from streams.faust.faust_options import faust_options
from streams.settings import Settings, load_settings
from streams.settings_problems import BadSettings


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("PB_", "KAFKA_")):
            monkeypatch.delenv(name)


def test_defaults_need_no_variable() -> None:
    settings = load_settings()
    assert (settings.bootstrap, settings.partitions, settings.web_bind) == (
        "127.0.0.1:9092",
        8,
        "127.0.0.1",
    )


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        load_settings().partitions = 4


@pytest.mark.parametrize("name", ["PB_BOOTSTRAP", "KAFKA_BOOTSTRAP"])
def test_either_name_gives_the_brokers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "a:1, b:2")
    assert load_settings().bootstrap == "a:1,b:2"


def test_an_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_PARTITIONS", "3")
    assert load_settings(partitions=5).partitions == 5


def test_a_file_gives_a_secret_which_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text("hush\n")
    monkeypatch.setenv("PB_SASL_PASSWORD_FILE", str(secret))
    settings = load_settings(security_protocol="SASL_PLAINTEXT", sasl_username="me")
    assert settings.kafka_auth()["sasl_plain_password"] == "hush"
    assert "hush" not in repr(settings)
    assert "hush" not in repr(faust_options(settings)["broker_credentials"])


def test_a_missing_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_SASL_PASSWORD_FILE", "/nowhere/password")
    with pytest.raises(BadSettings, match="PB_SASL_PASSWORD_FILE: cannot read /nowhere/password"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PB_PARTITIONS", "many", r"PB_PARTITIONS: .*integer.*; for example PB_PARTITIONS=8"),
        ("PB_WEB_PORT", "99999", r"PB_WEB_PORT: .*65535.*; for example PB_WEB_PORT=8080"),
        ("KAFKA_BOOTSTRAP", "a;b", r"KAFKA_BOOTSTRAP: 'a;b' is not host:port"),
        ("PB_BOOTSTRAP", "kafka://a:1", r"PB_BOOTSTRAP: 'kafka://a:1' is not host:port"),
        ("PB_REDIS_URL", "http://a", r"PB_REDIS_URL: must start with redis://"),
        ("PB_PREFIX", "a b", r"PB_PREFIX: "),
        ("PB_WEB_BIND", "", r"PB_WEB_BIND: .*; for example PB_WEB_BIND=127.0.0.1"),
        ("PB_HEARTBEAT", "9", r"PB_HEARTBEAT must be less than half of PB_SESSION_TIMEOUT"),
        ("PB_SECURITY_PROTOCOL", "SASL_SSL", r"needs PB_SASL_USERNAME and PB_SASL_PASSWORD"),
        ("PB_SSL_CERTFILE", "/a", r"PB_SSL_CERTFILE and PB_SSL_KEYFILE must be given together"),
        ("PB_CONTEXT_TTL", "inf", r"PB_CONTEXT_TTL: .*; for example PB_CONTEXT_TTL=604800"),
        ("PB_ORPHAN_WAIT", "nan", r"PB_ORPHAN_WAIT: "),
        ("PB_RETRY_FOR", "inf", r"PB_RETRY_FOR: "),
        ("PB_SOURCE_RANKS", "judge,human,judge", r"PB_SOURCE_RANKS: must be different names"),
        ("PB_SOURCE_RANKS", "human;judge", r"PB_SOURCE_RANKS: .* separated by commas"),
        ("PB_SOURCE_RANKS", "human,,judge", r"PB_SOURCE_RANKS: must be different names"),
        ("PB_CLOUD_EVENTS_SOURCE", "my router", r"PB_CLOUD_EVENTS_SOURCE: "),
        ("PB_SASL_USERNAME", "me", r"PB_SASL_USERNAME needs PB_SECURITY_PROTOCOL=SASL_SSL"),
        ("PB_BOOTSTRP", "a:1", r"PB_BOOTSTRP: no such setting; did you mean PB_BOOTSTRAP\?"),
        (
            "PB_KAFKA_BOOTSTRAP",
            "a:1",
            r"PB_KAFKA_BOOTSTRAP: no such setting; did you mean PB_BOOTSTRAP",
        ),
        (
            "PB_ORPHAN_WAIT_SECONDS",
            "5",
            r"PB_ORPHAN_WAIT_SECONDS: no such setting; did you mean PB_ORPHAN_WAIT",
        ),
        ("PB_ZZZ", "1", r"PB_ZZZ: no such setting; docs/reference/settings.md lists all of them"),
        ("PB_", "1", r"PB_: no such setting"),
        ("PB_STATSD_PORT", "9125", r"PB_STATSD_PORT: no such setting"),
    ],
)
def test_a_wrong_variable_is_named_with_a_right_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSettings, match=says):
        load_settings()


def test_what_kubernetes_says_of_services_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PB_KAFKA_SERVICE_HOST": "10.0.0.1",
        "PB_KAFKA_SERVICE_PORT": "9092",
        "PB_KAFKA_SERVICE_PORT_PLAIN": "9092",
        "PB_KAFKA_PORT": "tcp://10.0.0.1:9092",
        "PB_KAFKA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
        "PB_KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    load_settings()


@pytest.mark.parametrize(
    ("prefix", "group"),
    [
        ("pb.", "paretobandit"),
        ("test.", "test.paretobandit"),
        ("test", "testparetobandit"),
        ("", "-paretobandit"),
    ],
)
def test_each_prefix_has_a_group_of_its_own(
    monkeypatch: pytest.MonkeyPatch, prefix: str, group: str
) -> None:
    monkeypatch.setenv("PB_PREFIX", prefix)
    assert load_settings().app_id == Settings(prefix=prefix).app_id == group
    assert load_settings(app_id="named").app_id == "named"


def test_every_wrong_variable_is_listed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_PARTITIONS", "many")
    monkeypatch.setenv("PB_WEB_PORT", "none")
    with pytest.raises(BadSettings) as refusal:
        load_settings()
    assert len(str(refusal.value).splitlines()) == 2


def test_sources_rank_in_the_order_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_SOURCE_RANKS", "human, judge")
    settings = load_settings()
    assert (
        settings.source_rank("human")
        > settings.source_rank("judge")
        > settings.source_rank("clicks")
        == 0
    )


def test_plain_kafka_needs_no_credentials() -> None:
    settings = Settings(bootstrap="a:1")
    assert settings.kafka_auth() == {"bootstrap_servers": "a:1", "security_protocol": "PLAINTEXT"}
    assert faust_options(settings)["broker_credentials"] is None


def test_tls_needs_a_context_of_its_own() -> None:
    settings = Settings(security_protocol="SSL")
    assert settings.kafka_auth()["ssl_context"].check_hostname
    credentials: Any = faust_options(settings)["broker_credentials"]
    assert credentials is not None and credentials.context is not None


def test_a_persons_source_has_the_rank_of_the_source_that_it_begins_with() -> None:
    settings = load_settings(source_ranks=("human", "judge:v2", "judge"))
    names = ("human", "human:anna", "judge:v2", "judge", "judge:v1", "other:anna", ":")
    assert [settings.source_rank(name) for name in names] == [3, 3, 2, 1, 1, 0, 0]
