"""`python -m commands.cli` is `pbstream`."""

from commands.cli import main

if __name__ == "__main__":
    main(prog_name="pbstream")
