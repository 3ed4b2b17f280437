"""Find Java and the broker's jars, or fetch the jars once into a cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from ground.files.cache_folder import cache_folder

KAFKA_VERSION = "4.1.2"
"""The release that is fetched and started."""
MIN_JAVA = 17
"""Oldest Java that runs a broker of Kafka 4 (KIP-1013)."""
Say = Callable[[str], None]


class KafkaUnavailable(RuntimeError):
    """No broker can be started; the text says why, and what to install."""


def say_on_stderr(text: str) -> None:
    """Print one line of progress."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Installation:
    """Files that start a broker's JVM: the `java` command, the folder of jars, and their class data
    archive.
    """

    java: str
    jars: Path
    archive: Path

    @property
    def class_path(self) -> str:
        """All jars in a fixed order: the archive is valid for one order only."""
        return os.pathsep.join(str(jar) for jar in sorted(self.jars.glob("*.jar")))

    def first_records(self, properties: str) -> Path:
        """Return the cached file with the first records of a cluster that has these properties."""
        digest = hashlib.sha256(properties.encode()).hexdigest()[:12]
        return self.archive.parent / f"formatted-{digest}.checkpoint"


def put_in_place(made: Path, kept: Path) -> None:
    """Copy a file into the cache by one rename, as other processes may be reading it."""
    scratch = kept.with_suffix(f".{uuid.uuid4().hex}")
    shutil.copyfile(made, scratch)
    scratch.replace(kept)


def find_java() -> tuple[str, str]:
    """Find `java` and its version text.

    Raises:
        KafkaUnavailable: there is none, or it is older than the broker needs.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    install = "install it: apt-get install openjdk-17-jre-headless"
    if java is None:
        raise KafkaUnavailable(
            f"Java {MIN_JAVA} is missing{' in JAVA_HOME' if home else ''}; {install}"
        )
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', text)
    if found is None or int(found[1]) < MIN_JAVA:
        raise KafkaUnavailable(f"{java} is older than Java {MIN_JAVA}; {install}")
    return java, text


def installation(*, say: Say = say_on_stderr) -> Installation:
    """Return the broker's installation, fetching the jars if they are not in the cache yet.

    Safe when several processes call it at once: one fetches, the others wait for it.

    Raises:
        KafkaUnavailable: Java or Maven is missing, or Maven cannot fetch the jars.
    """
    java, version = find_java()
    cache = cache_folder(f"kafka-{KAFKA_VERSION}")
    jars = cache / "jars"
    if not jars.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / "lock"):
            if not jars.is_dir():
                _fetch(jars, say)
    return Installation(
        java, jars, cache / f"classes-{hashlib.sha256(version.encode()).hexdigest()[:12]}.jsa"
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(jars: Path, say: Say) -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise KafkaUnavailable(
            "Maven is missing, which fetches Kafka's jars; install it: apt-get install maven"
        )
    say(f"Fetching Kafka {KAFKA_VERSION} with Maven (45 MB, only this once) ...")
    with (
        tempfile.TemporaryDirectory(dir=jars.parent) as scratch,
        as_file(files(__package__) / "pom.xml") as pom,
    ):
        target = Path(scratch) / "jars"
        command = [
            mvn,
            "-B",
            "-f",
            str(pom),
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
        ]
        command += [f"-DoutputDirectory={target}", f"-Dkafka.version={KAFKA_VERSION}"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as maven:
            assert maven.stdout is not None
            last = _follow(maven.stdout, say)
        if maven.returncode != 0:
            raise KafkaUnavailable("Maven could not fetch Kafka's jars:\n" + "".join(last))
        found = list(target.glob("*.jar"))
        target.rename(jars)  # whole or not at all
    size = sum(jar.stat().st_size for jar in jars.glob("*.jar"))
    say(f"Kafka {KAFKA_VERSION}: {len(found)} jars, {size / 1e6:.0f} MB in {jars}")


def _follow(lines: Iterator[str], say: Say) -> list[str]:
    """Report every tenth jar that Maven downloads; return the last lines of its output."""
    last: deque[str] = deque(maxlen=15)
    count = 0
    for line in lines:
        last.append(line)
        if "Downloaded from" in line and ".jar" in line:
            count += 1
            if count % 10 == 0:
                say(f"  {count} jars fetched")
    return list(last)
