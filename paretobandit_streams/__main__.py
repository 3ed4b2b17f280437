"""`pbstream`, also as `python -m paretobandit_streams`."""

import io
import sys

from paretobandit_streams import enter


def main() -> None:
    """Run the command line."""
    enter()
    write_any_character(sys.stdout)
    from commands.cli import main as command

    command(prog_name="pbstream")


def write_any_character(output: object) -> None:
    """Let an output take any character. A file or a pipe gets UTF-8, whatever the locale is. A
    terminal gets "?" for each character that its character set lacks.
    """
    if isinstance(output, io.TextIOWrapper):
        if output.isatty():
            output.reconfigure(errors="replace")
        else:
            output.reconfigure(encoding="utf-8")


if __name__ == "__main__":
    main()
