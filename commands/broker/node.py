"""Run one broker node: its folder, its configuration, its JVM."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template

from commands.broker.child import spawn
from commands.broker.jars import Installation, KafkaUnavailable, put_in_place
from commands.broker.wire import HOST, new_cluster_id

FIRST_RECORDS = "bootstrap.checkpoint"
"""File of a formatted folder that lists the cluster's features; equal for all nodes and clusters
but for its time.
"""

LAST_LINES = 20
"""Lines of a node's log that an error quotes."""


@dataclass(slots=True)
class Node:
    """A combined broker and controller that can be started, killed, hung and started again on the
    same ports.

    Attributes:
        spare_port: free for a listener of `properties`.
    """

    node_id: int
    port: int
    controller_port: int
    folder: Path
    installed: Installation
    heap_mb: int
    full_jit: bool = False
    spare_port: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    scram_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    jvm: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """Return the address where clients connect."""
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """Tell whether the JVM is running; a paused one is."""
        return self.jvm is not None and self.jvm.poll() is None

    @property
    def config(self) -> Path:
        """The node's properties file."""
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        """Return the file of the JVM's output."""
        return self.folder / "kafka.log"

    def format(self, peers: Sequence[Node], *, cluster_id: str) -> None:
        """Write the configuration and format the log folder, unless an earlier start has formatted
        it.

        Raises:
            KafkaUnavailable: Kafka refuses the folder.
        """
        data = self.folder / "data"
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        several = len(peers) > 1
        template = (files(__package__) / "server.properties").read_text(encoding="utf-8")
        template += "".join(f"{name}={value}\n" for name, value in self.properties.items())
        text = Template(template).substitute(
            node_id=self.node_id,
            voters=",".join(f"{n.node_id}@{HOST}:{n.controller_port}" for n in peers),
            port=self.port,
            controller_port=self.controller_port,
            spare_port=self.spare_port,
            log_dir=data,
            replication=len(peers),
            min_isr=2 if several else 1,
            session_ms=3000 if several else 9000,
            heartbeat_ms=500 if several else 2000,
        )
        self.config.write_text(text, encoding="utf-8")
        # Formatting twice would be refused, or make the folder another cluster's.
        if (data / "meta.properties").exists():
            return
        kept = self.installed.first_records(template)
        if kept.exists() and not self.scram_users:
            self._format_from(kept, data, cluster_id)
            return
        tool = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self.config)]
        for name, password in self.scram_users.items():
            tool += ["--add-scram", f"SCRAM-SHA-512=[name={name},password={password}]"]
        done = subprocess.run([*self._java(), *tool], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise KafkaUnavailable(
                f"Kafka cannot format {data}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        # If the cache can't be written, the next start only takes a second more.
        with suppress(OSError):
            if not self.scram_users:
                put_in_place(data / FIRST_RECORDS, kept)

    def _format_from(self, kept: Path, data: Path, cluster_id: str) -> None:
        """Format the folder without Kafka's tool, whose JVM takes half as long as a broker's
        start."""
        data.mkdir()
        shutil.copyfile(kept, data / FIRST_RECORDS)
        names = {"version": 1, "node.id": self.node_id, "cluster.id": cluster_id}
        # The folder's id only has to be unique.
        names["directory.id"] = new_cluster_id()
        text = "".join(f"{name}={value}\n" for name, value in names.items())
        (data / "meta.properties").write_text(text, encoding="utf-8")

    def start(self, *, write_archive: bool = False) -> None:
        """Start the JVM; `write_archive` has its clean exit leave a class data archive, which
        speeds later starts.
        """
        archive = [
            f"-XX:ArchiveClassesAtExit={self.new_archive}",
            "-Xlog:cds=off",
            "-Xlog:cds+dynamic=off",
        ]
        self.jvm = spawn(
            [*self._java(*(archive if write_archive else ())), "kafka.Kafka", str(self.config)],
            log=self.log,
        )

    @property
    def new_archive(self) -> Path:
        """Return the temporary path of a new class data archive."""
        return self.folder / "classes.jsa"

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the JVM if it runs."""
        if self.jvm is not None and self.running:
            self.jvm.send_signal(number)

    def stop(self, *, grace: float) -> None:
        """Ask the JVM to stop, and kill it after `grace` seconds; a paused one is woken first."""
        if self.jvm is None:
            return
        # A stopped process takes no signal but SIGKILL until it is woken.
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM if grace > 0 else signal.SIGKILL)
        try:
            self.jvm.wait(max(grace, 5.0))
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            self.jvm.wait()
        self.jvm = None

    def last_report(self) -> str:
        """Return a report: which node this is, how it ended, and the end of its log."""
        code = None if self.jvm is None else self.jvm.poll()
        state = (
            "does not answer"
            if self.running
            else "has ended"
            if code is None
            else f"was ended by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with status {code}"
        )
        text = self.log.read_text(encoding="utf-8", errors="replace")
        words = "\n".join(text.splitlines()[-LAST_LINES:]) or "(nothing)"
        return f"node {self.node_id} on {self.address} {state}; the end of its log:\n{words}"

    def _java(self, *archive: str) -> list[str]:
        if not archive and self.installed.archive.exists():
            archive = (
                f"-XX:SharedArchiveFile={self.installed.archive}",
                "-Xshare:auto",
                "-Xlog:cds=off",
            )
        return [
            self.installed.java,
            f"-Xmx{self.heap_mb}m",
            "-XX:+UseSerialGC",
            *([] if self.full_jit else ["-XX:TieredStopAtLevel=1"]),
            "-XX:-UsePerfData",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.net.preferIPv4Stack=true",
            "-Djava.awt.headless=true",
            # Compression libraries are unpacked here; /tmp may be mounted noexec.
            f"-Djava.io.tmpdir={self.folder / 'tmp'}",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            *archive,
            "-cp",
            self.installed.class_path,
        ]
