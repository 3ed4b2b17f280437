"""Draw a board as panels for a terminal, as a line of text, or as a JSON document."""

from __future__ import annotations

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from doors.console.failures import first_model
from doors.console.session import named
from drawing.alert_words import sentence
from drawing.budget_lines import per_request, standing_lines
from drawing.numbers import dual, dual_in_words, usd
from drawing.plot import plot
from watching.board import Board

COLOURS = ("cyan", "yellow", "magenta", "green", "blue", "red")
"""Colours of the models' bars, in turn."""
PLOT = 66
"""Columns of the Pareto picture: with its margin and the panel's frame it fits into 80."""
SPARKS = "▁▂▃▄▅▆▇█"
"""Heights of a curve's points, low to high."""


def draw(board: Board, *, now: float, total: int | None = None, footer: str = "") -> RenderableType:
    """Return the live view, with the number of decided requests out of `total` if that is given."""
    rows: list[RenderableType] = []
    if total is not None:
        progress = Table.grid(padding=(0, 1), expand=True)
        progress.add_column(ratio=1)
        progress.add_column(justify="right", no_wrap=True)
        progress.add_row(
            ProgressBar(total=total, completed=board.decided),
            f"{board.decided:,} of {total:,} decided",
        )
        rows.append(progress)
    picture = board.pareto()
    if picture.router is not None and (drawn := plot(picture, width=PLOT, height=PLOT // 6)):
        rows += [Text(picture.sentence(), style="bold"), Text(drawn, no_wrap=True), Text()]
    rows += [Columns([_flow(board, now), _money(board)], padding=(0, 4)), _models(board)]
    if board.state is not None and (why := dual_in_words(board.state.lambda_t)):
        rows.append(Text(why, style="yellow"))
    if board.state is not None:
        rows += [Text(f"{line}.") for line in standing_lines(board.state)]
    rows += [Text(line, style="yellow") for line in _unaffordable(board)]
    rows += [Text(line, style="red") for line in alert_lines(board)]
    if board.dead_letters:
        reasons = ", ".join(
            f"{reason} {count}" for reason, count in board.dead_letters.most_common()
        )
        rows.append(Text(f"Dead letters: {reasons}", style="red"))
    if total is None and not board.asked:
        rows.append(Text(_first_step(board), style="yellow"))
    if footer:
        rows.append(Text(footer, style="dim"))
    return Panel(Group(*rows), title=f"router [bold]{board.router_id}[/bold]", border_style="dim")


def _first_step(board: Board) -> str:
    """Return the first command for a router that has decided nothing."""
    if board.state is None:
        return f"No router yet: {first_model(board.router_id)}."
    return f'No request yet: `pbstream request "Why is the sky blue?"{named(board.router_id)}`.'


def line(board: Board, *, now: float, total: int | None = None) -> str:
    """Return the board in one line of text."""
    state, ratio, reward = board.state, board.spend_per_budget, board.mean_reward
    of = "" if total is None else f"/{total}"
    # Only the last decisions of an older router were read.
    decided = board.decided if state is None or total is not None else state.decided
    parts = [f"decided {decided}{of}", f"{board.rate(now):.0f}/s"]
    if state is not None:
        parts += [
            f"spend {usd(state.spend_usd)}",
            f"λ_t {dual(state.lambda_t)}",
            f"in flight {state.in_flight}",
        ]
    for one in (state and state.budgets) or ():
        if one.binds:
            parts.append(f"left of the {one.line or one.period} {usd(one.left_usd)}")
    if ratio is not None:
        parts.insert(3, f"cost ÷ budget {ratio:.2f}")
    if reward is not None:
        parts.append(f"reward {reward:.3f}")
    parts.append(" ".join(f"{_short(model)} {share:.0%}" for model, share in board.shares.items()))
    if board.dead_letters:
        parts.append(f"dead letters {board.dead_letters.total()}")
    if board.alert_count:
        parts.append(f"alerts {board.alert_count}")
    return "  ".join(part for part in parts if part)


def as_json(board: Board, *, now: float) -> dict[str, object]:
    """Return the board as a JSON document."""
    return {
        "router_id": board.router_id,
        "requests_per_second": round(board.rate(now), 3),
        "state": None if board.state is None else board.state.model_dump(mode="json"),
        "spend_per_budget": board.spend_per_budget,
        "shares": board.shares,
        "mean_reward": board.mean_reward,
        "pareto": board.pareto().document(),
        "dead_letters": dict(board.dead_letters),
        "alerts": [alert.model_dump(mode="json") for alert in board.alerts],
    }


def alert_lines(board: Board) -> list[str]:
    """Return the last alerts, one sentence each."""
    return [f"{alert.observed_at:%H:%M:%S} {sentence(alert)}." for alert in board.alerts]


def _unaffordable(board: Board) -> list[str]:
    found = (board.state and board.state.unaffordable) or ()
    return [
        f"{one.model} can't be afforded: {usd(one.expected_cost_usd)} a call; with a budget of "
        f"{usd(one.needed_budget_usd_per_request)} 20 of 1,000 requests could go to it"
        for one in found
    ]


def _flow(board: Board, now: float) -> RenderableType:
    state = board.state
    grid = _grid("Traffic")
    grid.add_row("requests/s", f"{board.rate(now):.0f}")
    grid.add_row("decided", f"{state.decided if state else board.decided:,}")
    grid.add_row("in flight", f"{state.in_flight:,}" if state else "–")
    grid.add_row("settled", f"{state.settled:,}" if state else "–")
    grid.add_row("rewarded", f"{state.rewards_applied:,}" if state else "–")
    reward = board.mean_reward
    grid.add_row("mean reward", "–" if reward is None else f"[bold]{reward:.3f}[/bold]")
    return grid


def _money(board: Board) -> RenderableType:
    state, ratio = board.state, board.spend_per_budget
    grid = _grid("Money")
    grid.add_row("spend", usd(state.spend_usd) if state else "–")
    grid.add_row("budget/request", per_request(state) if state else "–")
    colour = "green" if ratio is not None and ratio <= 1.05 else "red"
    grid.add_row(
        "cost ÷ budget", "–" if ratio is None else f"[bold {colour}]{ratio:.3f}[/bold {colour}]"
    )
    grid.add_row("committed", usd(state.committed_usd) if state else "–")
    grid.add_row("λ_t", f"[bold]{dual(state.lambda_t if state else None)}[/bold]")
    grid.add_row("", Text(_spark(list(board.lambda_history)), style="blue"))
    return grid


def _models(board: Board) -> RenderableType:
    grid = _grid("Models (share of the last 500)")
    for at, (model, share) in enumerate(board.shares.items()):
        bar = Text("█" * max(1, round(share * 24)), style=COLOURS[at % len(COLOURS)])
        grid.add_row(_short(model), Text.assemble(bar, f" {share:.0%}"))
    return grid


def _grid(title: str) -> Table:
    grid = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        show_header=False,
        box=None,
        padding=(0, 1),
    )
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(no_wrap=True, min_width=9)
    return grid


def _spark(values: list[float], width: int = 24) -> str:
    if not values:
        return ""
    step = max(1, len(values) // width)
    shown = values[::step][-width:]
    top = max(shown) or 1.0
    return "".join(
        SPARKS[min(len(SPARKS) - 1, int(value / top * (len(SPARKS) - 1)))] for value in shown
    )


def _short(model: str) -> str:
    return model.rpartition("/")[2]
