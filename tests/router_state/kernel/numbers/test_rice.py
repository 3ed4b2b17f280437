"""Rice codes: numbers come back, and bytes that are no code are refused."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.kernel import rice_decode, rice_encode

NUMBERS = st.lists(st.integers(-40, 40), max_size=400)


@given(NUMBERS, st.integers(0, 2))
def test_numbers_come_back_whatever_zeros_follow(numbers: list[int], zeros: int) -> None:
    code = rice_encode(np.array(numbers, float))
    assert rice_decode(code + b"\0" * zeros, len(numbers)).tolist() == numbers


@given(NUMBERS)
def test_a_code_takes_at_most_seven_bits_a_number_up_to_31(numbers: list[int]) -> None:
    small = np.clip(np.array(numbers, float), -31, 31)
    assert len(rice_encode(small)) <= 1 + (7 * len(small) + 7) // 8


@given(st.binary(max_size=40), st.integers(0, 60))
def test_any_bytes_are_a_code_or_refused(data: bytes, n: int) -> None:
    with suppress(ValueError):
        assert len(rice_decode(data, n)) == n


def test_a_code_of_another_length_is_refused() -> None:
    code = rice_encode(np.array([3.0, -2.0, 0.0, 7.0]))
    for data, n in ((code, 3), (code, 9), (code[:-1], 4), (b"", 0), (b"\x06\xff", 1)):
        with pytest.raises(ValueError, match="code"):
            rice_decode(data, n)
