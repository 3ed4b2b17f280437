"""`pbstream`, also as `python -m paretobandit_streams`."""

from paretobandit_streams import enter


def main() -> None:
    """Run the command line."""
    enter()
    from commands.cli import main as command

    command(prog_name="pbstream")


if __name__ == "__main__":
    main()
