"""Compile router_state/kernel, each `.pyx` to an extension beside it:

    python build_kernel.py [--force]

Wheels and editable installations are built with it. It needs Cython, numpy, setuptools and a C
compiler.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface as _Interface
except ImportError:
    _Interface = object

ROOT = Path(__file__).resolve().parent
FLAGS = ["-O3", "-g0", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
"""No multiplication is fused with an addition: every machine rounds the same sums."""
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "infer_types": True,
    "cdivision": False,
    "nonecheck": True,
}


def build(*, profiled: bool = False) -> None:
    """Compile what has changed. Raises what Cython or the compiler say, and FileNotFoundError
    without a compiler.

    Args:
        profiled: build into build/profiled instead, with calls that `sys.setprofile` sees.
    """
    import numpy
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    _require_compiler()
    os.chdir(ROOT)
    one = Extension(
        "*",
        ["router_state/kernel/*/*.pyx"],
        include_dirs=[numpy.get_include(), "router_state/kernel/numbers"],
        extra_compile_args=[] if sys.platform == "win32" else FLAGS,
    )
    force, place = "--force" in sys.argv, "build/profiled" if profiled else "build/kernel"
    directives = DIRECTIVES | {"profile": profiled}
    made = cythonize(
        [one], build_dir=place, compiler_directives=directives, force=force, quiet=True
    )
    command: Any = Distribution({"ext_modules": made}).get_command_obj("build_ext")
    command.inplace, command.build_temp, command.force = not profiled, place, force
    command.build_lib = place
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()


def _require_compiler() -> None:
    """Raise FileNotFoundError before Cython's ten seconds, not after them."""
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    if sys.platform != "win32" and shutil.which(command.split()[0]) is None:
        raise FileNotFoundError(f"no C compiler: {command} is not found; install gcc or set CC")


class Hook(_Interface):
    """Builds the kernel into wheels and editable installations."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling."""
        if self.target_name == "wheel":
            build()
            build_data["artifacts"] += ["router_state/kernel/**/*.so", "*/kernel/**/*.pyd"]
            build_data["pure_python"], build_data["infer_tag"] = False, True


if __name__ == "__main__":
    build()
