"""Tell how to install an extra of this distribution, for errors that miss one."""


def command(extra: str) -> str:
    """Return the command that installs an extra, to be run in a checkout."""
    return f"uv pip install ./client '.[{extra}]'"
