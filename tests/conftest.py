"""The real parts which tests share: one Kafka and one Redis for the whole run. Missing parts fail,
they never skip. And the settings of Hypothesis: `ci`, the same few examples every time;
`--hypothesis-profile=long` for a night (pytest tests/router_state).
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import engine, providers
from hypothesis.internal.constants_ast import Constants
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from commands.broker.child import spawn
from commands.broker.choose import NAMES, KafkaUnavailable, choose_broker
from commands.broker.wire import free_ports
from tests.integration import forked

# More threads than one make products of these sizes no faster, and beside other processes slower.
# What tests start inherits it; numpy and torch, which read it once, are not imported yet.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
# The Java broker is up in two seconds and a container's in ten. What is tested of containers has
# tests of its own, and a broker that somebody names goes before both.
if not any(map(os.environ.get, NAMES)) and all(map(shutil.which, ("java", "mvn"))):
    os.environ.setdefault("PB_BROKER", "local")

TESTS = Path(__file__).parent
SERVICES = TESTS / "integration"
WAITING = (
    *("client", "containers", "doors/gateway", "doors/integrations", "integration", "parity"),
    *("reference", "release"),
)
"""Folders of tests that wait for brokers, workers and browsers; the others compute."""
LONGEST = [
    *("dashboard", "label_inbox", "pages", "litellm", "demo", "wheel", "quick_round", "cli"),
    *("replay_into", "image", "compose", "record_streams", "parity", "audit", "label_sources"),
    *("integrate_page", "secured", "exchange_priors", "worth", "client_settings", "async_router"),
    *("ownership", "estimates", "hazards", "snapshot_elsewhere", "commit_model"),
    *("asyncapi_parser", "scenario", "audit_clean", "litellm_proxy"),
    *("replay_verify", "worlds", "refusing", "refused", "restarts", "audit_drawn"),
    *("ramp_sessions", "replay_order", "asking", "parity_kafka", "readiness", "any_order"),
    *("core_machine", "collecting", "crew", "broker", "slow_and_lost", "http"),
    *("dashboard_pools", "tables", "redeclaring", "audit_learned", "dashboard_proof"),
    *("exchange_grants", "period_money", "damage", "aside", "snapshot", "attempts_stream"),
    *("command_line", "propensity", "proof", "pool_model", "live_defaults"),
    *("projections_on_kafka", "pools", "cli_doctor", "completion", "private_names"),
    *("audit_finds", "unreadable", "layers", "door", "service", "cli_reports", "replay_report"),
    *("waits", "site", "pool", "verifier_alerts", "watched", "real_models", "cli_dlq"),
    *("incumbents", "starting_from_snapshots", "in_force_compacted", "learning_together"),
    *("labels_command", "bounds", "weights", "clock_jumps", "own_routers", "service_redis"),
    *("request_bounds", "audit_labels", "static", "ticks", "litellm_plans", "limits_of_plans"),
    "export",
]
"""Files of more than a dozen seconds, the longest first (`--durations`): one that begins late is
waited for alone."""
TOGETHER = [
    (
        *("label_inbox", "dashboard_pools", "dashboard_proof", "dashboard_verifiers"),
        *("dashboard_answers", "dashboard_names"),
    ),
    ("cli", "refused", "cli_dlq", "snapshot", "cli_reports"),
    ("pages", "cli_doctor", "cli_router_files", "prompts", "labels_command"),
    ("litellm", "litellm_plans", "litellm_signals", "litellm_prices", "price_list"),
]
"""Files of tests of one browser, of one worker (the fixtures `browser`, `worker`) or of LiteLLM,
which one process runs one after the other; `dashboard` alone takes as long as two of them. A
browser takes two seconds to start, and LiteLLM three to import; an idle worker and what the broker
does for it take a thirtieth of a core until the process ends.
"""
SHARED_PARTS = ("worker", "chrome")
"""The fixtures that such files share: they end with the last of the files."""
Parts = list[tuple[pytest.FixtureDef[Any], pytest.FixtureRequest]]
PARTS = pytest.StashKey[Parts]()
SHRINKING = 30
"""Most seconds that Hypothesis may spend on making a failing example smaller. Its own five minutes
are those of a test: pytest's limit would end the test before the error is said."""
NEW_BEFORE_COLLECTION = 50_000
"""Objects that may be new before Python looks for garbage. After Python's own 700 it looks so often
that tests which compute take a twelfth more.
"""
LATE = ("litellm", "matplotlib", "selenium", "sentence_transformers", "sklearn", "torch")
"""Packages that a test imports when it runs: at collection each process would, for seconds."""
SHARED = pytest.StashKey[dict[str, str]]()
STARTING = 240.0
"""Seconds until the broker that all processes share has to answer."""

settings.register_profile(
    "ci", derandomize=True, max_examples=30, stateful_step_count=40, deadline=None, database=None
)
settings.register_profile(
    "long",
    max_examples=10_000,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So a shell starts what it puts into the background, and what the tests start would inherit it:
    # Ctrl-C would stop nothing.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `--looks` is for, and begin with the longest files. Files that compute come
    between those that wait for brokers, workers and browsers: so no core is idle for long.
    """
    if not config.getoption("--looks"):
        looks = [item for item in items if item.get_closest_marker("looks")]
        config.hook.pytest_deselected(items=looks)
        items[:] = [item for item in items if item not in looks]
    together = {f"test_{name}.py" for names in TOGETHER for name in names}
    own = (
        item for item in items if item.path.parent == SERVICES and item.path.name not in together
    )
    if alone := {item.path.name for item in own if "worker" in getattr(item, "fixturenames", ())}:
        raise pytest.UsageError(f"{', '.join(alone)} should stand in TOGETHER of {__file__}")
    ranks = {f"test_{name}.py": rank for rank, name in enumerate(LONGEST)}
    paths = sorted({item.path: None for item in items}, key=lambda p: ranks.get(p.name, len(ranks)))
    waiting = [TESTS / folder for folder in WAITING]
    parts = {path: any(map(path.is_relative_to, waiting)) for path in paths}
    place = {
        path: position / len(files)
        for files in ([p for p in paths if parts[p] == kind] for kind in (False, True))
        for position, path in enumerate(files)
    }
    items.sort(key=lambda item: place[item.path])


class Scheduling(LoadFileScheduling):
    """Give the files that stand together in `TOGETHER` to one process, every other file alone."""

    def _split_scope(self, nodeid: str) -> str:
        return _group_of(nodeid)


def _group_of(nodeid: str) -> str:
    """Return a name of the files that stand together with a test's file; alone it is its own."""
    file = nodeid.partition("::")[0]
    name = file.rpartition("/")[2].removeprefix("test_").removesuffix(".py")
    return next((names[0] for names in TOGETHER if name in names), file)


def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> None:
    """Remember a part that a group of files shares."""
    if fixturedef.argname in SHARED_PARTS and fixturedef.scope == "session":
        request.config.stash.setdefault(PARTS, []).append((fixturedef, request))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End what a group of files has shared with its last test: idle, it would take CPU until the
    process ends.
    """
    if nextitem is None or _group_of(item.nodeid) != _group_of(nextitem.nodeid):
        parts: Parts = item.config.stash.get(PARTS, [])
        while parts:
            fixturedef, request = parts.pop()
            fixturedef.finish(request)  # type: ignore[arg-type]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """See `Scheduling`; any other distribution than `--dist loadfile` stays as it is."""
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `make test-release` gives."""
    parser.addoption(
        "--looks",
        action="store_true",
        help="check too how pages look: at any width, in dark and light, and with axe-core",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the settings of Hypothesis before any test is imported: a property keeps those that
    there are then.
    """
    config.addinivalue_line("markers", "looks: is run with --looks alone")
    if (folder := getattr(config, "workerinput", {}).get("forks")) is not None:
        forked.shared = Path(folder)
    if config.getoption("--hypothesis-profile", default=None) is None:
        settings.load_profile("ci")
        engine.MAX_SHRINKING_SECONDS = SHRINKING
        # Hypothesis draws from the constants of all modules that are imported: the examples would
        # depend on which other files of tests a process has run.
        providers._get_local_constants = Constants


def pytest_collection() -> None:
    """Collect no garbage while tests are collected: what they import and are stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Set aside what was imported and collected, so that no collection looks at it again.

    Raises:
        UsageError: a module of tests imports a package of `LATE` at its top.
    """
    if early := [name for name in LATE if name in sys.modules]:
        raise pytest.UsageError(f"collection imports {', '.join(early)}; a test may, when it runs")
    gc.freeze()
    gc.set_threshold(NEW_BEFORE_COLLECTION, *gc.get_threshold()[1:])
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Start one broker for all processes of a parallel run, while they collect their tests, and one
    process that forks: each more costs as much as a hundred tests.
    """
    folder = Path(tempfile.mkdtemp(prefix="pb-tests-"))
    over = threading.Event()
    broker = threading.Thread(target=_share_broker, args=(folder, over), daemon=True)
    broker.start()

    def end() -> None:
        over.set()
        broker.join()
        shutil.rmtree(folder)

    config.add_cleanup(end)
    config.stash[SHARED] = {"kafka": str(folder / "bootstrap"), "forks": str(forked.begin())}


def _share_broker(folder: Path, over: threading.Event) -> None:
    """Run a broker until the tests are over; its address is in the file `bootstrap` once it
    answers. Without one the file is empty.
    """

    def say(address: str) -> None:
        (folder / "written").write_text(address)
        (folder / "written").rename(folder / "bootstrap")

    try:
        with suppress(KafkaUnavailable), choose_broker() as broker:
            say(broker.bootstrap)
            over.wait()
    finally:
        if not (folder / "bootstrap").exists():
            say("")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput.update(node.config.stash[SHARED])


def _shared_broker(told: Path) -> str:
    """Return the address of the broker that all processes share, once it answers."""
    deadline = time.monotonic() + STARTING
    while not told.exists():
        assert time.monotonic() < deadline, "the broker that all tests share does not start"
        time.sleep(0.05)
    return told.read_text()


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the bootstrap address of a real broker; each test uses topics and groups of its own."""
    told = getattr(request.config, "workerinput", {}).get("kafka")
    # Where none starts, each process says why.
    if told is not None and (shared := _shared_broker(Path(told))):
        yield shared
        return
    try:
        with choose_broker() as broker:
            yield broker.bootstrap
    except KafkaUnavailable as reason:
        pytest.fail(str(reason), pytrace=False)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a real Redis: PB_REDIS_URL, else a `redis-server` that keeps nothing on
    disk.
    """
    given = os.environ.get("PB_REDIS_URL")
    if given:
        _wait_for_redis(given)
        yield given
        return
    if shutil.which("redis-server") is None:
        pytest.fail(
            "redis-server is missing; set PB_REDIS_URL, or: apt-get install redis-server",
            pytrace=False,
        )
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("redis")
    options = [
        "--bind",
        "127.0.0.1",
        "--port",
        str(port),
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        str(folder),
    ]
    server = spawn(["redis-server", *options], log=Path(folder) / "redis.log")
    url = f"redis://127.0.0.1:{port}/0"
    try:
        _wait_for_redis(url)
        yield url
    finally:
        server.kill()
        server.wait()


def _wait_for_redis(url: str, *, timeout: float = 10.0) -> None:
    deadline = time.monotonic() + timeout
    with redis.Redis.from_url(url) as client:
        while True:
            try:
                client.ping()
                return
            except redis.ConnectionError as error:
                if time.monotonic() > deadline:
                    pytest.fail(f"no Redis answers at {url}: {error}", pytrace=False)
                time.sleep(0.05)
