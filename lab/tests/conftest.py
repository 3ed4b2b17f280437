"""The laboratory's tests have the settings of the product's, and silence the library."""

from tests.conftest import kafka, pytest_configure
from tests.parity.conftest import quiet_library

__all__ = ["kafka", "pytest_configure", "quiet_library"]
