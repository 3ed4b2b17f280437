"""Every file of YAML that a command takes: what is refused, where, and before it costs anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.cli import main
from ground.files.yaml_text import DEEPEST, LARGEST_BYTES, MOST_VALUES, BadYaml, load_yaml

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
REFUSED = {
    "aliases that multiply": (BOMB, "line 2, column 10: alias *a0"),
    "an alias": ("a: &x 1\nb: *x", "line 2, column 4: alias *x"),
    "lists in lists": ("[" * 3000 + "]" * 3000, "line 1, column 33: more than 32 levels"),
    "names below names": ("\n".join("  " * n + "a:" for n in range(3000)), "more than 32 levels"),
    "one name twice": ("a: 1\nb: 2\na: 3", "line 3, column 1: 'a' appears twice, first on line 1"),
    "one name twice, below": ("a:\n  b: 1\n  'b': 2", "line 3, column 3: 'b' appears twice"),
    "a name that YAML takes for false": ("no: 1", "line 1, column 1: a name here is text"),
    "a merge": ("<<: {a: 1}", "line 1, column 1: a name here is text"),
    "a list for a name": ("? [a]\n: 1", "line 1, column 3: a name here is text"),
    "a tag": ("a: !!timestamp soon", "line 1, column 4: a tag"),
    "a number of many digits": (f"a: {'9' * 5000}", "line 1, column 4: a number of 5,000"),
    "two documents": ("a: 1\n---\nb: 2", "line 2, column 1: expected a single document"),
    "more values than a router has": ("- 1\n" * (MOST_VALUES + 1), "more than 500,000 values"),
    "no YAML": ("{", "line 2, column 1: "),
}
COMMANDS = {
    "routers apply": ["routers", "apply", "FILE"],
    "routers diff": ["routers", "diff", "FILE"],
    "replay --scenario": ["replay", "--from", "FOLDER", "--scenario", "FILE"],
    "convert --mapping": ["convert", "--mapping", "FILE", "FILE"],
    "ingest --mapping": ["ingest", "topic", "--mapping", "FILE"],
}


@pytest.mark.parametrize(("text", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_ambiguous_or_too_much_is_refused_at_its_place(text: str, says: str) -> None:
    with pytest.raises(BadYaml) as raised:
        load_yaml(text)
    assert says in str(raised.value)


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("refused", ["aliases that multiply", "lists in lists", "one name twice"])
def test_every_command_refuses_it_in_a_sentence(
    words: list[str], refused: str, tmp_path: Path
) -> None:
    text, says = REFUSED[refused]
    (tmp_path / "requests-0.jsonl").write_bytes(b"")
    (tmp_path / "file.yaml").write_text(text)
    at = {"FILE": str(tmp_path / "file.yaml"), "FOLDER": str(tmp_path)}
    result = CliRunner().invoke(main, [at.get(word, word) for word in words])
    assert result.exit_code in (1, 2) and isinstance(result.exception, SystemExit), result.output
    assert at["FILE"] in result.output and says in result.output


@pytest.mark.parametrize(
    "data", [b"a: \xff", b"# \n" * (LARGEST_BYTES // 3 + 1)], ids=["no UTF-8", "too long"]
)
def test_bytes_that_are_no_text_or_too_many_are_refused(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_bytes(data)
    result = CliRunner().invoke(main, ["routers", "diff", str(file)])
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert "byte 3 is not UTF-8" in result.output or "more than 16 MiB" in result.output


def test_a_value_on_the_command_line_is_refused_alike() -> None:
    result = CliRunner().invoke(main, ["routers", "set", "acme", "alpha=[1"])
    assert result.exit_code == 1 and "'[1' is not YAML: line 2" in result.output


def test_what_is_as_deep_as_allowed_and_json_are_read() -> None:
    assert load_yaml("[" * DEEPEST + "]" * DEEPEST) is not None
    assert load_yaml('{"a": 1e-4, "b": [true, null, "no"]}') == {"a": 1e-4, "b": [True, None, "no"]}
    assert load_yaml("") is None


def test_values_are_those_of_json() -> None:
    """YAML has more: dates, numbers that are not finite, octal ones, base 60."""
    dates = "2026-13-45", "2026-01-01", "2026-01-01T00:00:00Z"
    for text in (*dates, ".nan", "-.inf", "010", "1:30"):
        assert load_yaml(f"a: {text}") == {"a": text}
    assert load_yaml(f"a: 1{':10' * 99_999}") == {"a": f"1{':10' * 99_999}"}
    numbers = "[0, -3, +4, 1_000, 0x1f, .5, 5., 0.1, 1e5, 1.5E-3, -2e+3]"
    assert load_yaml(numbers) == [0, -3, 4, 1000, 31, 0.5, 5.0, 0.1, 1e5, 0.0015, -2000.0]
