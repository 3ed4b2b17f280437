"""`python -m streams.cli` is `pbstream`."""

from streams.cli import main

if __name__ == "__main__":
    main(prog_name="pbstream")
