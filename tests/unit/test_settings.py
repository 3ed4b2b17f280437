"""Settings: read once, refused with a line that says what to write."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from streams.settings import BadSettings, Settings, load_settings


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("PB_", "KAFKA_")):
            monkeypatch.delenv(name)


def test_defaults_need_no_variable() -> None:
    settings = load_settings()
    assert (settings.bootstrap, settings.partitions, settings.web_bind) == ("127.0.0.1:9092", 8, "127.0.0.1")


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        load_settings().partitions = 4  # type: ignore[misc]


@pytest.mark.parametrize("name", ["PB_BOOTSTRAP", "KAFKA_BOOTSTRAP"])
def test_either_name_gives_the_brokers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "a:1, b:2")
    assert load_settings().bootstrap == "a:1,b:2"


def test_an_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_PARTITIONS", "3")
    assert load_settings(partitions=5).partitions == 5


def test_a_file_gives_a_secret_which_is_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hush\n")
    monkeypatch.setenv("PB_SASL_PASSWORD_FILE", str(secret))
    settings = load_settings(security_protocol="SASL_PLAINTEXT", sasl_username="me")
    assert settings.kafka_auth()["sasl_plain_password"] == "hush"
    assert "hush" not in repr(settings)
    assert "hush" not in repr(settings.faust_credentials())


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
        ("PB_HEARTBEAT", "9", r"PB_HEARTBEAT must be less than half of PB_SESSION_TIMEOUT"),
        ("PB_SECURITY_PROTOCOL", "SASL_SSL", r"needs PB_SASL_USERNAME and PB_SASL_PASSWORD"),
        ("PB_SSL_CERTFILE", "/a", r"PB_SSL_CERTFILE and PB_SSL_KEYFILE must be given together"),
        ("PB_BOOTSTRP", "a:1", r"PB_BOOTSTRP: no such setting; did you mean PB_BOOTSTRAP\?"),
    ],
)
def test_a_wrong_variable_is_named_with_a_right_value(monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSettings, match=says):
        load_settings()


def test_variables_of_other_programs_are_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_SERVICE_HOST", "10.0.0.1")
    load_settings()


def test_every_wrong_variable_is_listed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_PARTITIONS", "many")
    monkeypatch.setenv("PB_WEB_PORT", "none")
    with pytest.raises(BadSettings) as refusal:
        load_settings()
    assert len(str(refusal.value).splitlines()) == 2


def test_sources_rank_in_the_order_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_SOURCE_RANKS", "human, judge")
    settings = load_settings()
    assert settings.source_rank("human") > settings.source_rank("judge") > settings.source_rank("clicks") == 0


def test_plain_kafka_needs_no_credentials() -> None:
    settings = Settings(bootstrap="a:1")
    assert settings.kafka_auth() == {"bootstrap_servers": "a:1", "security_protocol": "PLAINTEXT"}
    assert settings.faust_credentials() is None


def test_tls_needs_a_context_of_its_own() -> None:
    settings = Settings(security_protocol="SSL")
    assert settings.kafka_auth()["ssl_context"].check_hostname
    assert settings.faust_credentials().context is not None
