"""A figure has a twin for dark pages, and the same bytes each time."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from benchmarks.figure import figure, save_png
from benchmarks.inks import DARK, LIGHT, LINES


def test_a_figure_is_written_for_light_and_for_dark_pages_the_same_each_time(
    tmp_path: Path,
) -> None:
    for name in ("one.png", "two.png"):
        made, grid = figure()
        grid[0, 0].plot([1, 2], [3, 4], "o-", label="line")
        grid[0, 0].fill_between([1, 2], [3, 4], color=LINES[1])
        grid[0, 0].legend()
        made.suptitle("title")
        save_png(made, tmp_path / name)
    for twin in ("", "-dark"):
        one, two = (tmp_path / f"{name}{twin}.png" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    for name, inks in (("one", LIGHT), ("one-dark", DARK)):
        with Image.open(tmp_path / f"{name}.png") as image:
            found = {ink for _, ink in image.convert("RGB").getcolors(10**6) or ()}
        assert {_rgb(inks[ink]) for ink in ("paper", "c0", "c1")} <= found
    assert not {_rgb(LIGHT["paper"]), (0, 0, 0)} & found


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))
