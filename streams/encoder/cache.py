"""Export the int8 encoder once per machine, and find it again by the hash of its weights."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ground.files.cache_folder import cache_folder
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.to_onnx import EXPORT_VERSION, MANIFEST_FILE
from streams.encoder.weights import find_weights, hash_weights

log = logging.getLogger(__name__)


def exported_folder(weights: str | None = None) -> Path:
    """Return the folder of the exported encoder for these weights, exporting first if it is not in
    the cache.

    The export runs in a process of its own: torch never enters this one.

    Raises:
        EncoderError: the weights or what the export needs are not installed; the message says what
        to do.
    """
    found = find_weights(weights)
    target = cache_folder("encoder", f"{hash_weights(found)[:32]}-v{EXPORT_VERSION}")
    if not (target / MANIFEST_FILE).is_file():
        log.info("exporting the encoder to %s, once; about 20 seconds", target)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=target.parent, prefix=".export-"))
        try:
            _export(part, found)
            part.chmod(0o755)
            _move(part, target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return target


def _export(out_dir: Path, weights: Path) -> None:
    command = [sys.executable, "-m", "streams.encoder.to_onnx", str(out_dir), str(weights)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EncoderError(f"the encoder could not be exported: {done.stderr.strip()[-2000:]}")


def _move(part: Path, target: Path) -> None:
    try:
        part.rename(target)
    except OSError:
        # Another process was faster: its export is as good as this one.
        if not (target / MANIFEST_FILE).is_file():
            raise
