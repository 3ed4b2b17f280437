"""One reader takes rows of prompt, model, cost and score as people have them, for fit and replay
alike.
"""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.cli import main
from studies.simulate.rows import Rows, UnplayableRows
from studies.warm_start.columns import EXAMPLE
from studies.warm_start.judgements import (
    JudgedPrompt,
    Reading,
    UnusableJudgements,
    read_judgements,
)
from studies.warm_start.table_file import rows_of

SKY, SEA = "Why is the sky blue?", "Why is the sea salty?"
ONE = [JudgedPrompt(SKY, {"small": 0.7}, {"small": 3e-5})]
BOTH = [JudgedPrompt(SKY, {"small": 0.7, "large": 0.95}, {"small": 3e-5, "large": 0.0011})]


def read(folder: Path, content: str | bytes, **reading: object) -> list[JudgedPrompt]:
    path = folder / "rows.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_judgements(path, Reading(**reading))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        EXAMPLE,
        EXAMPLE.replace("\n", "\r\n") + "\r\n\r\n",
        EXAMPLE.replace("\n", "\r"),
        "\r" + EXAMPLE.replace("\n", "\r") + "\r",
        f'\r{{"prompt": "{SKY}", "model": "small", "cost": 3e-5, "score": 0.7}}\r',
        "\ufeff" + EXAMPLE,
        "\n\n" + EXAMPLE + "\n,,,\n",
        EXAMPLE.replace(",", "\t"),
        f"sep=;\nprompt;model;cost;score\n{SKY};small;0,00003;0,7\n",
        f"SCORE;Cost USD;Model-Name;Question\n0,7;$0,00003;small;{SKY}",
        f"prompt,model,costs,rewards\n{SKY},small,0.00003,0.7",
        f"id,prompt,model,cost,score,note\n7,{SKY},small,3e-5,.7,\n",
        f'{{"prompt": "{SKY}", "model": "small", "cost": 3e-5, "score": 0.7}}\n',
        f'\ufeff\n{{"Query": "{SKY}", "llm": "small", "usd": "0.00003", "reward": "0.7"}}',
        f'{{"prompt": "{SKY}", "rewards": {{"small": 0.7}}, "costs": {{"small": 3e-5}}}}',
    ],
)
def test_the_same_row_is_read_from_every_form(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content) == ONE


def test_rows_of_one_prompt_are_one_prompt_with_all_models(tmp_path: Path) -> None:
    assert read(tmp_path, f"{EXAMPLE}\n{SKY},large,0.0011,0.95\n") == BOTH


def test_of_an_answer_that_comes_again_the_mean_counts(tmp_path: Path) -> None:
    again = "".join(f"{SKY},small,{cost},{score}\n" for cost, score in [(5e-5, 0.4), (7e-5, 0.1)])
    (row,) = read(tmp_path, f"{EXAMPLE}\n{again}")
    assert row.rewards["small"] == pytest.approx(0.4)
    assert row.costs["small"] == pytest.approx(5e-5)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_is_named_by_its_number_however_lines_end(tmp_path: Path, end: str) -> None:
    rows = f'{EXAMPLE}\n"a\nb",large,0.0011,0.95\nc,large,-1,0.9'.replace("\n", end)
    with pytest.raises(UnusableJudgements, match="line 5: the cost of 'large'"):
        read(tmp_path, rows)


def test_an_empty_cell_is_unknown(tmp_path: Path) -> None:
    content = f"{EXAMPLE}\n{SEA},small,0.00002,\n{SEA},large,,0.5\n{SEA},huge\n"
    row = read(tmp_path, content)[1]
    assert row == JudgedPrompt(SEA, {"large": 0.5}, {"small": 2e-5})


def test_either_of_score_and_cost_is_enough(tmp_path: Path) -> None:
    assert read(tmp_path, f"prompt,model,cost\n{SKY},small,3e-5")[0].rewards == {}
    assert read(tmp_path, f"prompt,model,score\n{SKY},small,0.7")[0].costs == {}


def test_columns_are_named_by_an_option(tmp_path: Path) -> None:
    content = f"was,wer,geld,note,score\n{SKY},small,3e-5,0.7,bad\n"
    named = {"prompt": "was", "model": "wer", "cost": "geld", "score": "note"}
    assert read(tmp_path, content, columns=named) == ONE


def test_scores_of_another_scale_are_brought_to_0_and_1(tmp_path: Path) -> None:
    rows = "".join(f"{SKY} {n},small,{n}\n" for n in range(1, 6))
    found = read(tmp_path, f"prompt,model,score\n{rows}", score_range=(1.0, 5.0))
    assert [row.rewards["small"] for row in found] == [0.0, 0.25, 0.5, 0.75, 1.0]
    nested = json.dumps({"prompt": SKY, "rewards": {"small": 3}})
    assert read(tmp_path, nested, score_range=(1.0, 5.0))[0].rewards == {"small": 0.5}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("prompt,cost,score\nx,1,1", "no column model among 'prompt', 'cost', 'score'"),
        ("prompt,cost,score\nx,1,1", "--column model=NAME"),
        ("prompt,model\nx,a", EXAMPLE),
        ("x,small,0.1,0.7\ny,small,0.1,0.7", "no column prompt and none model"),
        ("prompt,model,rating,grade\nx,a,1,1", "--column score=rating"),
        ("prompt,model,score,score\nx,a,1,1", "two columns 'score'"),
        (f"{EXAMPLE}\n{SKY},small,0.1,4\n", "line 3: the score of 'small' must be a number from 0"),
        (f"{EXAMPLE}\n{SKY},small,0.1,4\n", "--score-range 1:5"),
        (f"{EXAMPLE}\n{SKY},small,0.1,good\n", "not 'good'"),
        (f"{EXAMPLE}\n{SKY},small,-1,0.1\n", "the cost of 'small' must be a number from 0 to 1000"),
        (f"{EXAMPLE}\n,small,0.1,0.4\n", 'line 3: needs "prompt"'),
        (f"{EXAMPLE}\n{SKY},,0.1,0.4\n", 'line 3: needs "model"'),
        (f"{EXAMPLE}\n{SKY},small,0.1,0.4,5\n", "line 3: has 5 cells, and the header has 4"),
        (f'{EXAMPLE}\n"{SKY}\n,small,0.1,0.4\n', "every quote closed"),
        (f'{EXAMPLE}\n"two\nlines",small,0.1,9\n', "line 4: the score"),
        (EXAMPLE.encode() + b"\n\xe4,small,0.1,0.4", "line 3: is not UTF-8; in Excel"),
        (EXAMPLE.encode("utf-16"), "is UTF-16; save it as UTF-8"),
        ('[{"prompt": "x"}]', "write one object a line"),
        ('{"prompt": "x", "model": "a"}', "no column score or cost"),
        ("", "holds no prompts"),
        ("prompt,model,score\n", "holds no prompts"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_right(
    tmp_path: Path, content: str | bytes, said: str
) -> None:
    with pytest.raises(UnusableJudgements) as refused:
        read(tmp_path, content)
    assert said in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "rows.csv"))


@pytest.mark.parametrize("option", ["score=stars", "prompt=Prompt"])
def test_a_column_that_is_not_there_is_named(tmp_path: Path, option: str) -> None:
    what, _, name = option.partition("=")
    with pytest.raises(UnusableJudgements, match=f"no column '{name}'"):
        read(tmp_path, EXAMPLE, columns={what: name})


@settings(max_examples=50)
@given(
    prompts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
        min_size=1,
        unique=True,
    ),
    separator=st.sampled_from(",;\t|"),
)
def test_any_prompt_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, prompts: list[str], separator: str
) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator)
    writer.writerow(["prompt", "model", "score"])
    writer.writerows([prompt, "small", 0.5] for prompt in prompts)
    found = read(tmp_path_factory.mktemp("rows"), out.getvalue())
    assert [row.prompt for row in found] == prompts


def test_rows_stream_by(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(EXAMPLE.encode() + b"\n" * 100_000 + b"\xff\n")
    # The first row is there before the bad end of the file is read.
    assert next(rows_of(path)).cells["model"] == "small"


def table(rows: int, *, whole: bool) -> str:
    """Return rows of two models; `whole`: both answered every prompt."""
    lines = ["prompt,model,cost,score"]
    for n in range(rows):
        answers = [("small", 3e-5, 0.6), ("large", 1.1e-3, 0.9)]
        for model, cost, score in answers if whole else answers[n % 2 : n % 2 + 1]:
            lines.append(f"What is {n} plus {n % 7}?,{model},{cost},{score + n % 5 / 100}")
    return "\n".join(lines)


def test_a_prompt_that_all_models_answered_is_one_request_with_all_outcomes(
    tmp_path: Path,
) -> None:
    whole = [*Rows(read(tmp_path, table(10, whole=True)), router_id="r", budget_usd=None)]
    assert len(whole) == 1 + 3 * 10
    assert set(whole[1].request.metadata["outcomes"]) == {"small", "large"}
    partly = [*Rows(read(tmp_path, table(10, whole=False)), router_id="r", budget_usd=None)]
    assert len(partly) == 1 + 3 * 10
    assert partly[1].request.metadata is None


def test_the_budget_is_what_the_rows_cost_where_none_is_said(tmp_path: Path) -> None:
    rows = read(tmp_path, table(10, whole=True))
    assert Rows(rows, router_id="r", budget_usd=None).budget_usd == pytest.approx(5.65e-4)
    assert Rows(rows, router_id="r", budget_usd=0.5).budget_usd == 0.5
    assert Rows(rows, router_id="r", budget_usd=None).models == ["small", "large"]


def test_free_rows_have_no_budget(tmp_path: Path) -> None:
    free = Rows(
        read(tmp_path, f"prompt,model,cost,score\n{SKY},a,0,1"), router_id="r", budget_usd=None
    )
    assert next(iter(free)).router.budget_usd_per_request is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"prompt,model,score\n{SKY},small,0.7", "no row says what small cost"),
        (f"prompt,model,cost\n{SKY},small,0.7", "no row has a score"),
    ],
)
def test_rows_that_cannot_be_played_say_what_they_lack(
    tmp_path: Path, content: str, said: str
) -> None:
    with pytest.raises(UnplayableRows, match=said):
        Rows(read(tmp_path, content), router_id="r", budget_usd=None)


def run(*words: str) -> str:
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_replay_of_rows_says_what_each_model_would_have_earned(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(table(120, whole=True))
    found = json.loads(run("replay", "--from", str(tmp_path / "rows.csv"), "--json"))
    assert set(found["policies"]) == {"live", "small", "large"}
    for model, score, cost in (("small", 0.62, 3e-5), ("large", 0.92, 1.1e-3)):
        total = found["policies"][model]["total"]
        assert total["requests"] == 120 and total["modelled"] == 0.0
        assert total["reward"] == pytest.approx(score)
        assert total["cost_usd_per_request"] == pytest.approx(cost)
    assert found["policies"]["live"]["total"]["cost_over_budget"] < 1.3


def test_a_replay_of_rows_reads_columns_scales_and_a_budget(tmp_path: Path) -> None:
    content = table(40, whole=False).replace("score", "stars", 1)
    (tmp_path / "rows.csv").write_text(content)
    named = ("--column", "score=stars", "--score-range", "0:2", "--budget", "0.0001")
    told = run("replay", "--from", str(tmp_path / "rows.csv"), *named, "--policy", "small")
    assert "small earned 0.3" in told and "The budget is $0.0001 per request;" in told
    assert "1970" not in told


def test_fit_and_replay_take_the_same_file(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(table(60, whole=True))
    told = run("fit", str(rows), str(tmp_path / "priors"), "--components", "4", "--explain")
    assert "60 prompts" in told and "±" in told
    assert "Over 60 requests" in run("replay", "--from", str(rows), "--policy", "large")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["replay", "--from", "ROWS", "--verify"], "rows are not"),
        (["replay", "--budget", "0.1"], "for a file of rows"),
        (["replay", "--from", "ROWS", "--column", "stars"], "as score=rating"),
        (["replay", "--from", "ROWS", "--score-range", "5:1"], "low to high, such as 1:5"),
        (["replay", "--from", "ROWS", "--policy", "huge"], "known models: large, small"),
        (["fit", "--from-history", "FOLDER", "--score-range", "1:5"], "for JUDGEMENTS"),
        (["fit", "ROWS", "FOLDER"], "10 prompts, and 25 components need 26 at least"),
    ],
)
def test_what_has_no_meaning_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "rows.csv").write_text(table(10, whole=True))
    places = {"ROWS": str(tmp_path / "rows.csv"), "FOLDER": str(tmp_path / "priors")}
    done = CliRunner().invoke(main, [places.get(word, word) for word in words])
    assert done.exit_code != 0 and said in " ".join(done.output.split())


def test_a_replay_begins_with_what_fit_wrote_at_the_budget_that_fit_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = {"math": ("sum", "prime", "root", "proof"), "chat": ("hello", "song", "story", "rain")}
    quality = {"small": {"math": 0.3, "chat": 0.9}, "large": {"math": 0.9, "chat": 0.92}}
    lines = ["prompt,model,cost,score"]
    for at in range(240):
        task = ("math", "chat")[at % 2]
        prompt = " ".join(rng.choice(words[task], 4)) + f" number {at}"
        for model, usd in (("small", 3e-5), ("large", 1e-3)):
            score = np.clip(quality[model][task] + rng.normal(0.0, 0.05), 0.0, 1.0)
            lines.append(f"{prompt},{model},{usd * rng.lognormal(0, 0.2):.8f},{score:.3f}")
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    rows, folder = str(tmp_path / "rows.csv"), str(tmp_path / "priors" / "first")
    fitted = CliRunner().invoke(main, ["fit", rows, folder, "--explain", "--components", "4"])
    assert fitted.exit_code == 0, fitted.output
    assert f"pbstream replay --from {rows} --prior {folder}" in fitted.output
    assert re.search(r"\d directions, so that a context has \d numbers", fitted.output)
    told = re.search(r"Routing gains most at \$([\d.]+) per request", fitted.output)
    assert told is not None
    played = CliRunner().invoke(main, ["replay", "--from", rows, "--prior", folder])
    assert played.exit_code == 0, played.output
    assert "live beside the best fixed mix of models at its cost: +0." in played.output
    budget = re.search(r"The budget is \$([\d.]+) per request, at which", played.output)
    assert budget is not None and float(budget[1]) == pytest.approx(float(told[1]), rel=0.05)
    assert "Policies begin without priors" not in played.output
    other = CliRunner().invoke(
        main, ["replay", "--from", rows, "--prior", folder, "--budget", "0.0007"]
    )
    assert "The budget is $0.0007 per request;" in other.output
