"""Compile router_state/kernel into one extension beside it:  python build_kernel.py [--check]

It is also what a wheel and an editable installation are built with. It needs Cython, numpy,
setuptools and a C compiler; without them the kernel runs as Python.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
import sysconfig
import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface as _Interface
except ImportError:
    _Interface = object

ROOT = Path(__file__).resolve().parent
FOLDER = ROOT / "router_state" / "kernel"
PARTS = (
    "numbers/elementary",
    "numbers/linear",
    "learning/gaussian",
    "learning/regression",
    "learning/shared_prior",
    "learning/evidence",
    "learning/estimating",
    "numbers/randomness",
    "choosing/sample",
    "pacing/dual",
    "choosing/context",
    "choosing/propensity",
    "learning/detector",
    "costs/predictive",
    "costs/cost_means",
    "costs/cost_model",
    "choosing/candidates",
    "routing/risk",
    "pacing/window_scores",
    "pacing/waiting",
    "choosing/arm",
    "choosing/portfolio",
    "pacing/window",
    "pacing/debt",
    "pacing/pacer",
    "pacing/ema_pacer",
    "pacing/dollar_dual",
    "routing/record",
    "numbers/total",
    "routing/books",
    "routing/learners",
    "routing/settling",
    "routing/deciders",
    "routing/deciding",
)
"""Modules of the kernel, each after those that it uses."""
FLAGS = ["-O3", "-g0", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
"""No multiplication is fused with an addition: every machine rounds the same sums."""
TYPES = {
    "Real": "cython.double",
    "Index": "cython.Py_ssize_t",
    "Whole": "cython.int",
    "Word": "cython.ulonglong",
    "Flag": "cython.bint",
    "Floats": "cython.p_double",
    "Singles": "cython.p_float",
}
"""C types of the kernel's annotations, by their names."""
FIELDS = {name: kind.replace("cython.", "") for name, kind in TYPES.items()} | {
    "Word": "unsigned long long",
    "Floats": "double*",
    "Singles": "float*",
}
CLASSES = re.findall(
    r"^@cclass\nclass (\w+)",
    "\n".join((FOLDER / f"{name}.py").read_text() for name in PARTS),
    re.MULTILINE,
)
"""Classes of the kernel: what is one of them is no mere object."""
OBJECTS = (
    "Any|Array|Asked|Charged|Guess|Journal|Judged|Matrix|ModuleType|Outcome|Price|Records|Vector"
)
"""Names of types that C does not know."""
HEAD = '''\
# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: infer_types=True, cdivision=False, nonecheck=True
import cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT
from cpython.buffer cimport PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.math cimport isfinite, sqrt
from libc.math cimport frexp as _frexp
from libc.string cimport memset

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static inline double power_of_two(int k) {
        uint64_t bits = (uint64_t)((int64_t)k + 1023) << 52;
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__has_attribute)
    #if __has_attribute(target_clones)
    #define VECTORED __attribute__((target_clones("avx2", "default")))
    #endif
    #endif
    #ifndef VECTORED
    #define VECTORED
    #endif
    """
    double power_of_two(int k) noexcept

cdef extern from *:
    """
    #define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
    #define NO_IMPORT_ARRAY
    #include <numpy/arrayobject.h>
    static inline void* row_of(PyObject* array, int type, Py_ssize_t n) {
        PyArrayObject* row = (PyArrayObject*)array;
        int fits = PyArray_TYPE(row) == type && PyArray_NDIM(row) == 1;
        fits = fits && PyArray_ISCARRAY_RO(row) && PyArray_DIM(row, 0) == n;
        return fits ? PyArray_DATA(row) : NULL;
    }
    """
    int NPY_DOUBLE
    void* row_of(object array, int type, Py_ssize_t n) noexcept

COMPILED = True
cdef unsigned long long MASK = 0xFFFFFFFFFFFFFFFFULL

from numpy import ndarray as ROW_TYPE

cdef double* known(object array, Py_ssize_t n) except? NULL:
    if type(array) is ROW_TYPE:
        # The same as below, without a description of the buffer.
        row = row_of(array, NPY_DOUBLE, n)
        if row != NULL:
            return <double*>row
    cdef Py_buffer found
    PyObject_GetBuffer(array, &found, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    fits = found.ndim == 1 and found.format[0] == c"d" and found.format[1] == 0
    fits = fits and found.shape[0] == n
    numbers = <double*>found.buf
    PyBuffer_Release(&found)
    if not fits:
        raise ValueError(f"no {n} 64-bit floats, one behind the other")
    return numbers

cdef double* view(object array) except? NULL:
    return known(array, len(array))

cdef object block(Py_ssize_t n):
    made = PyBytes_FromStringAndSize(NULL, 8 * n)
    memset(PyBytes_AS_STRING(made), 0, 8 * n)
    return made

cdef inline double* of_block(object room) noexcept:
    return <double*>PyBytes_AS_STRING(room)

cdef inline double* behind(double* numbers, Py_ssize_t i) noexcept:
    return numbers + i

cdef float* singles(object array, Py_ssize_t n) except? NULL:
    cdef Py_buffer found
    PyObject_GetBuffer(array, &found, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    fits = found.format[0] == c"f" and found.format[1] == 0 and found.len >= 4 * n
    numbers = <float*>found.buf
    PyBuffer_Release(&found)
    if not fits:
        raise ValueError(f"no {n} 32-bit floats, one behind the other")
    return numbers

cdef inline int whole(double value) noexcept:
    return <int>value

cdef inline (double, int) frexp(double value) noexcept:
    cdef int exponent = 0
    cdef double mantissa = _frexp(value, &exponent)
    return mantissa, exponent
'''
"""The words of the kernel, in C: see router_state/kernel/numbers/words.py."""


def sources() -> str:
    """Return a digest of the kernel's modules, as `router_state.kernel.sources` does."""
    digest = blake2b(digest_size=16)
    for path in sorted(FOLDER.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_current() -> bool:
    """Tell whether there is an extension of these sources and for this Python."""
    mark = FOLDER / "_compiled.of"
    return bool(_extensions()) and mark.exists() and mark.read_text() == _mark()


def _mark() -> str:
    maker = blake2b(Path(__file__).read_bytes(), digest_size=16).hexdigest()
    return f"{sources()} {maker} {sys.implementation.cache_tag}"


def _extensions() -> list[Path]:
    return [*FOLDER.glob("_compiled*.so"), *FOLDER.glob("_compiled*.pyd")]


def program() -> str:
    """Return all modules of the kernel as one program of Cython."""
    parts = [_part((FOLDER / f"{name}.py").read_text()) for name in PARTS]
    public = re.findall(r'^    "(\w+)",$', (FOLDER / "__init__.py").read_text(), re.MULTILINE)
    names = [name for name in public if name not in ("COMPILED", "sources")]
    table = ", ".join(f"{name!r}: {name}" for name in names)
    tail = f"SOURCES = {sources()!r}\n\ndef public():\n    return {{{table}}}\n"
    return "\n".join([HEAD, *parts, tail])


def _part(text: str) -> str:
    """Return one module without what the others and C stand for, its types in Cython's words."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if _is_of_python(node):
            _blank(lines, node)
        elif isinstance(node, ast.AnnAssign):
            _declare(lines, node, "cdef")
        elif isinstance(node, ast.Assign):
            _declare_numbers(lines, node)
        elif isinstance(node, ast.ClassDef) and any(
            isinstance(one, ast.Name) and one.id == "cclass" for one in node.decorator_list
        ):
            for field in node.body:
                if isinstance(field, ast.AnnAssign):
                    _declare(lines, field, "cdef public")
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef) and _is_of_c(function):
            _return_nothing(lines, function)
    found = "\n".join(lines).replace("@cclass\nclass", "cdef class")
    unchecked = "@cython.cfunc\n@cython.exceptval(check=False)\n"
    found = found.replace("@pure\n@vectored\n", unchecked)
    found = found.replace("@pure\n", f"@cython.inline\n{unchecked}")
    found = found.replace("@cfunc\n", "@cython.cfunc\n")
    found = found.replace("@ccall\n", "@cython.ccall\n")
    found = found.replace("@uncollected\n", "@cython.no_gc\n")
    found = re.sub(rf"(: |-> )({OBJECTS})\b", r"\1object", found)
    return re.sub(rf"(: |-> )({'|'.join(TYPES)})\b", lambda hit: hit[1] + TYPES[hit[2]], found)


def _vectored(made: str) -> str:
    """Return the program in C with the mark of the functions that use wide vectors."""
    texts = [(FOLDER / f"{name}.py").read_text() for name in PARTS]
    names = "|".join(re.findall(r"^@vectored\ndef (\w+)", "\n".join(texts), re.MULTILINE))
    of_c = rf"^static (\w+ __pyx_f_\w+_compiled_(?:{names})\()"
    return re.sub(of_c, r"static VECTORED \1", made, flags=re.MULTILINE)


def _is_of_python(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        return module in ("__future__", "math") or module.startswith("router_state.kernel")
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _is_of_c(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(one) in ("cfunc", "ccall", "pure") for one in node.decorator_list)


def _return_nothing(lines: list[str], node: ast.FunctionDef) -> None:
    """Let a function of C that returns None return nothing."""
    end = node.body[0].lineno - 1
    for number in range(node.lineno - 1, end):
        lines[number] = lines[number].replace("-> None:", "-> cython.void:")


def _blank(lines: list[str], node: ast.stmt) -> None:
    for number in range(node.lineno - 1, node.end_lineno or node.lineno):
        lines[number] = ""


def _declare(lines: list[str], node: ast.AnnAssign, word: str) -> None:
    """Turn `name: kind [= value]` into a declaration of C."""
    at, name = node.lineno - 1, ast.unparse(node.target)
    kind = ast.unparse(node.annotation).partition("[")[0]
    kind = kind.removesuffix(" | None")
    own = (*CLASSES, "dict", "list", "set", "tuple")
    kind = FIELDS.get(kind, kind if kind in own else "object")
    if kind.endswith("*") or name.startswith("_"):
        word = "cdef"
    lines[at] = re.sub(r"\w+: [^=]+?(?= =|$)", f"{word} {kind} {name}", lines[at], count=1)


def _declare_numbers(lines: list[str], node: ast.Assign) -> None:
    """Turn constants that are numbers into numbers of C."""
    names, values = _items(node.targets[0]), _items(node.value)
    kinds = [_kind(value) for value in values]
    if not all(kinds) or len(names) != len(values):
        return
    _blank(lines, node)
    lines[node.lineno - 1] = "\n".join(
        f"cdef {kind} {ast.unparse(name)} = {ast.unparse(value)}"
        for kind, name, value in zip(kinds, names, values, strict=True)
    )


def _items(node: ast.expr) -> list[ast.expr]:
    """Return the parts of a tuple or of `range(8)`, or what is neither."""
    if found := re.fullmatch(r"range\((\d+)\)", ast.unparse(node)):
        return [ast.Constant(number) for number in range(int(found[1]))]
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _kind(value: ast.expr) -> str:
    try:
        number = ast.literal_eval(value)
    except ValueError:
        return ""
    return {float: FIELDS["Real"], int: FIELDS["Index"]}.get(type(number), "")


def build() -> None:
    """Compile the kernel. Raises what the compiler says, and at once where there is none."""
    compiler = os.environ.get("CC", sysconfig.get_config_var("CC") or "cc").split()[0]
    if sys.platform != "win32" and shutil.which(compiler) is None:
        raise FileNotFoundError(f"there is no C compiler {compiler}")
    for path in _extensions():
        path.unlink()
    import numpy
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "_compiled.pyx"
        source.write_text(program())
        extension = Extension(
            "_compiled",
            [str(source)],
            include_dirs=[numpy.get_include()],
            extra_compile_args=[] if sys.platform == "win32" else FLAGS,
        )
        made = cythonize([extension], build_dir=work, quiet=True, language_level=3)
        in_c = Path(made[0].sources[0])
        in_c.write_text(_vectored(in_c.read_text()))
        command: Any = build_ext(Distribution({"ext_modules": made}))
        command.build_lib, command.build_temp, command.force = str(FOLDER), work, True
        command.ensure_finalized()
        command.run()
    (FOLDER / "_compiled.of").write_text(_mark())


class Hook(_Interface):
    """Builds the kernel into wheels and editable installations, where there is a compiler."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling: `version` is `editable` or `standard`."""
        if self.target_name != "wheel":
            return
        try:
            if not is_current():
                build()
        # Whatever the compiler lacks: the kernel runs without.
        except (Exception, SystemExit) as error:
            self.app.display_warning(f"the kernel will run uncompiled: {error}")
            return
        build_data["artifacts"] += ["router_state/kernel/_compiled*.so", "*/_compiled*.pyd"]
        build_data["pure_python"], build_data["infer_tag"] = False, True


def main() -> int:
    """Build the kernel unless it is current; with `--check` only tell."""
    if is_current() and "--force" not in sys.argv:
        return 0
    if "--check" in sys.argv:
        return 1
    build()
    return 0


if __name__ == "__main__":
    sys.exit(main())
