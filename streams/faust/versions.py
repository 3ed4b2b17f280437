"""Refuse to start on other versions of the framework than those whose methods are replaced here."""

from importlib.metadata import PackageNotFoundError, version

VERSIONS = {"faust-streaming": "0.15.3", "mode-streaming": "0.7.1", "aiokafka": "0.14.0"}
"""The versions whose methods are replaced here; `tests/streams/faust/test_framework_contract.py`
tests what the code relies on."""


class UnknownFramework(Exception):
    """The installed version of a package is not the one whose parts this code replaces."""

    reason = "unknown_framework"
    retriable = False


def require_known_versions() -> None:
    """Raise UnknownFramework with a line for each package that differs."""
    problems = []
    for package, needed in VERSIONS.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            found = "no version"
        if found != needed:
            problems.append(f"{package}: {found} is installed, {needed} is needed: run `uv sync`")
    if problems:
        raise UnknownFramework("\n".join(problems))
