"""Verifiers as options declare them."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from commands.cli import main
from commands.cli.verdict_command import VerdictType
from commands.cli.verifier_options import VerifiersType
from schemas.verifiers import VerifierDeclared

READ = VerifiersType()


def test_fees_truth_and_steps_are_read() -> None:
    assert READ.convert("tests=0:exact,judge=0.00004:3, other = 1", None, None) == {
        "tests": {"usd": 0.0, "exact": True},
        "judge": {"usd": 4e-5, "bins": 3},
        "other": {"usd": 1.0},
    }
    assert READ.convert("none", None, None) == "none"


@pytest.mark.parametrize(
    "wrong",
    [
        *("", "tests", "tests=", "tests=x", "tests=-1", "tests=nan", "tests=inf", "=0"),
        *("tests=0:2:exact", "tests=0:exact:1", "tests=0:1", "tests=0:9"),
        *("tests=0,tests=0", "tests=0,"),
    ],
)
def test_what_is_none_says_the_form(wrong: str) -> None:
    with pytest.raises(click.BadParameter, match=r"NAME=USD|twice|2 to 8"):
        READ.convert(wrong, None, None)


@given(
    st.dictionaries(
        st.text("abcXYZ-_.9", min_size=1, max_size=9),
        st.tuples(st.floats(0.0, 1000.0), st.booleans(), st.none() | st.integers(2, 8)),
        min_size=1,
        max_size=8,
    )
)
def test_whatever_is_written_is_a_declaration_that_workers_take(
    drawn: dict[str, tuple[float, bool, int | None]],
) -> None:
    written = ",".join(
        f"{name}={usd!r}{':exact' * exact}{'' if bins is None else f':{bins}'}"
        for name, (usd, exact, bins) in drawn.items()
    )
    found = READ.convert(written, None, None)
    assert isinstance(found, dict)
    for name, (usd, exact, bins) in drawn.items():
        read = VerifierDeclared.model_validate(found[name])
        assert (read.usd, read.exact, read.bins) == (usd, exact, bins)


def test_setting_nothing_says_what_to_give() -> None:
    result = CliRunner().invoke(main, ["routers", "set", "chat"])
    assert result.exit_code == 2 and "--verifiers" in result.output


@pytest.mark.parametrize("wrong", ["maybe", "1.2", "-0.1", "True"])
def test_what_is_no_verdict_is_told_what_is(wrong: str) -> None:
    with pytest.raises(click.BadParameter, match="is not pass, fail or 0 to 1"):
        VerdictType().convert(wrong, None, None)
    assert [VerdictType().convert(said, None, None) for said in ("pass", "fail", "0.7")] == [
        1,
        0,
        0.7,
    ]
