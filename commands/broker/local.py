"""Run one or three real brokers on loopback, and cause faults in them."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from commands.broker.jars import KafkaUnavailable, Say, installation, put_in_place, say_on_stderr
from commands.broker.node import Node
from commands.broker.wire import free_ports, live_brokers, new_cluster_id
from ground.boundary import undoing

START_SECONDS = 90.0
"""Seconds within which all nodes must answer."""
LOOK_SECONDS = 0.5
"""Seconds between two checks whether all nodes are up."""
STOP_SECONDS = 20.0
"""Seconds for an orderly stop of a node; then it is killed."""


class LocalKafka:
    """Kafka (KRaft) from Maven's jars; nodes are numbered from 1. With three: replication 3, min
    ISR 2.

    Two of three nodes must live, for the controllers as for `acks=all`. The JVMs end when this
    process does.

    Example:
        with LocalKafka(brokers=3) as kafka:
            produce_to(kafka.bootstrap)
            kafka.kill(2)
            kafka.start_node(2)

    Args:
        brokers: 1, or an odd number for fault tests.
        data_dir: kept folder; without one, a temporary folder that is deleted at the end.
        port: the first node's port; by default a free one between 20000 and 32000.
        full_jit: let the JVM optimise fully: for load tests, at the price of more CPU at first.
        properties: settings beside those of `server.properties`, or in their place; `${port}` and
            its other names may be used.
        scram_users: passwords by user, for SCRAM-SHA-512.
    """

    def __init__(
        self,
        brokers: int = 1,
        data_dir: Path | None = None,
        *,
        port: int | None = None,
        full_jit: bool = False,
        properties: Mapping[str, str] | None = None,
        scram_users: Mapping[str, str] | None = None,
        say: Say = say_on_stderr,
    ) -> None:
        self._count = brokers
        self._kept = data_dir
        self._port = port
        self._full_jit = full_jit
        self._properties = properties or {}
        self._scram_users = scram_users or {}
        self._say = say
        self._folder = Path()
        self._archiving = False
        self.nodes: dict[int, Node] = {}

    @property
    def bootstrap(self) -> str:
        """All nodes' addresses, comma-separated."""
        return ",".join(node.address for node in self.nodes.values())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start all nodes and wait until each of them knows all others.

        Raises:
            KafkaUnavailable: Java, Maven or a jar is missing, or a node does not come up.
        """
        installed = installation(say=self._say)
        self._folder = (self._kept or Path(tempfile.mkdtemp(prefix="pb-kafka-"))).absolute()
        ports = free_ports(3 * self._count)
        if self._port is not None:
            ports[0] = self._port
        heap_mb = 512 if self._count == 1 else 384
        self.nodes = {
            n: Node(
                n,
                port=ports[n - 1],
                controller_port=ports[self._count + n - 1],
                folder=self._folder / f"node{n}",
                installed=installed,
                heap_mb=heap_mb,
                full_jit=self._full_jit,
                spare_port=ports[2 * self._count + n - 1],
                properties=self._properties,
                scram_users=self._scram_users,
            )
            for n in range(1, self._count + 1)
        }
        with undoing(self.stop):
            self._launch()

    def _launch(self) -> None:
        nodes = list(self.nodes.values())
        cluster_id = self._cluster_id()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda node: node.format(nodes, cluster_id=cluster_id), nodes))
        # The JVM writes its archive at a clean exit only, so this run has to stop its first node in
        # order.
        self._archiving = not nodes[0].installed.archive.exists()
        for node in nodes:
            node.start(write_archive=self._archiving and node is nodes[0])
        self.wait_ready(self.nodes)

    def _cluster_id(self) -> str:
        """Return the id that the data folder was formatted with, else a new one."""
        known = self.nodes[1].folder / "data" / "meta.properties"
        found = (
            re.search(r"^cluster\.id=(\S+)", known.read_text(), re.MULTILINE)
            if known.exists()
            else None
        )
        return found[1] if found else new_cluster_id()

    def wait_ready(self, node_ids: Collection[int], *, timeout: float = START_SECONDS) -> None:
        """Wait until each of these nodes answers and lists all of them.

        Raises:
            KafkaUnavailable: one has died, or `timeout` seconds have passed; with the end of its
            log.
        """
        deadline = time.monotonic() + timeout
        for node_id in node_ids:
            node = self.nodes[node_id]
            while not live_brokers(node.address) >= set(node_ids):
                if not node.running or time.monotonic() > deadline:
                    raise KafkaUnavailable(f"Kafka {node.last_report()}")
                time.sleep(0.05)

    def watch(self) -> None:
        """Wait while a majority of nodes lives; report each node that ends, with the end of its
        log.

        Raises:
            KafkaUnavailable: fewer than a majority are left.
        """
        here = set(self.nodes)
        while True:
            for node_id in [n for n in here if not self.nodes[n].running]:
                here.remove(node_id)
                gone = f"Kafka {self.nodes[node_id].last_report()}"
                if 2 * len(here) <= self._count:
                    raise KafkaUnavailable(gone)
                self._say(gone)
            time.sleep(LOOK_SECONDS)

    def kill(self, node_id: int) -> None:
        """Crash a node (SIGKILL)."""
        self.nodes[node_id].stop(grace=0)

    def stop_node(self, node_id: int) -> None:
        """Stop a node in an orderly way; it hands its partitions over first."""
        self.nodes[node_id].stop(grace=STOP_SECONDS)

    def pause(self, node_id: int) -> None:
        """Hang a node: connections stay open, nothing answers."""
        self.nodes[node_id].send(signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        """Let a paused node go on."""
        self.nodes[node_id].send(signal.SIGCONT)

    def start_node(self, node_id: int) -> None:
        """Start a dead node again on its ports and data, and wait until it is back in the
        cluster.
        """
        self.nodes[node_id].start()
        self.wait_ready({node_id})

    def stop(self) -> None:
        """Stop all nodes; a temporary data folder is deleted.

        A node asks a majority of controllers for leave to stop, so kept data gets an orderly stop
        for as long as there is one, and the last nodes two seconds.
        """
        # An orderly stop is a vote of the controllers: below a majority of them it would wait for
        # ever.
        keep_majority = self._count - self._count // 2
        for left, node in zip(range(self._count, 0, -1), self.nodes.values(), strict=False):
            last = self._count > 1 and left <= keep_majority
            orderly = self._kept is not None or (self._archiving and node.node_id == 1)
            node.stop(grace=0 if not orderly else 2.0 if last else STOP_SECONDS)
        if self._archiving:
            self._keep_archive()
        if self._kept is None and self._folder != Path():
            shutil.rmtree(self._folder, ignore_errors=True)

    def _keep_archive(self) -> None:
        first = self.nodes[1]
        if first.new_archive.exists():
            put_in_place(first.new_archive, first.installed.archive)
            first.new_archive.unlink()
