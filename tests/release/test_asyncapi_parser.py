"""AsyncAPI's own parser takes the document of all topics."""

import shutil
import subprocess

import pytest

from schemas.export import FOLDER
from tests.pages import ROOT


@pytest.mark.skipif(
    shutil.which("npm") is None,
    reason="Node.js is missing, which nothing else needs: tools/asyncapi-check",
)
def test_parser_of_asyncapi_finds_no_fault() -> None:
    ran = subprocess.run(
        [str(ROOT / "tools" / "asyncapi-check"), str(FOLDER / "schemas" / "asyncapi.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
