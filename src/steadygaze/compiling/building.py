"""Kernels → machine code, by numba: compiles a function for given arguments, with an entry that needs no numba to call.

Imported only when code is missing on disk.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types as numba_types
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.np.arrayobj import populate_array

from ..errors import InternalError
from .machine_code import (
    DATA,
    DIMENSIONS,
    DTYPE,
    ENTRY,
    FIXED,
    FLAGS,
    SHAPE,
    STRIDES,
    TABLE,
    TYPE,
    table_entries,
)

types: Any = numba_types  # its classes are generic in some versions and plain in others
_INT, _WORD, _DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
_OBJECT = ir.IntType(8).as_pointer()

_C_ORDER, _F_ORDER, _ALIGNED, _WRITEABLE = 0x1, 0x2, 0x100, 0x400
"""Flags of numpy arrays."""

_PYTHON: dict[str, tuple[ir.Type, ...]] = {
    "PyNumber_AsSsize_t": (_WORD, _OBJECT, _OBJECT),
    "PyFloat_AsDouble": (_DOUBLE, _OBJECT),
    "PyObject_IsTrue": (_INT, _OBJECT),
    "PyType_IsSubtype": (_INT, _OBJECT, _OBJECT),
    "PyTuple_Size": (_WORD, _OBJECT),
    "PyTuple_GetItem": (_OBJECT, _OBJECT, _WORD),
    "PyTuple_New": (_OBJECT, _WORD),
    "PyTuple_SetItem": (_INT, _OBJECT, _WORD, _OBJECT),
    "PyLong_FromLongLong": (_OBJECT, _WORD),
    "PyLong_FromUnsignedLongLong": (_OBJECT, _WORD),
    "PyFloat_FromDouble": (_OBJECT, _DOUBLE),
    "PyBool_FromLong": (_OBJECT, _WORD),
    "PyEval_SaveThread": (_OBJECT,),
    "PyEval_RestoreThread": (ir.VoidType(), _OBJECT),
    "Py_IncRef": (ir.VoidType(), _OBJECT),
}
"""Functions of Python's stable interface that the entry calls: result, then arguments."""

LIBRARY = frozenset((
    "memcpy", "memmove", "memset", "sqrt", "exp", "log", "log2", "pow", "sin", "cos", "floor", "ceil", "fabs", "fmod",
    "ldexp", "frexp", "fmin", "fmax", "fma", "hypot", "atan2", "trunc", "rint", "log1p", "expm1", "log10", "tan",
))  # fmt: skip
"""Functions of the C library that compiled code may call. Any other would have to come from numba."""


@global_compiler_lock
def build_code(dispatcher: Any, arguments: tuple[Any, ...]) -> bytes:
    """Compile a function for the types of these arguments, as an object file."""
    codegen = dispatcher.targetctx.codegen()
    return codegen._tm.emit_object(build_module(dispatcher, arguments))


@global_compiler_lock
def build_module(dispatcher: Any, arguments: tuple[Any, ...]) -> Any:
    """Compile a function for the types of these arguments, as an optimised module of LLVM."""
    kinds = tuple(dispatcher.typeof_pyval(value) for value in arguments)
    codegen = dispatcher.targetctx.codegen()
    with _without_collection(), _one_pass(codegen):
        return _build(dispatcher, codegen, kinds, len(list(table_entries(arguments))))


@contextmanager
def _without_collection() -> Iterator[None]:
    """No search for cycles: the compiler makes so many objects that it would take a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Part(CPUCodeLibrary):
    """The code of a function that is only linked into other code: it is neither optimised alone nor made executable."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_specific(self) -> None:
        pass

    def get_pointer_to_function(self, name: str) -> int:
        """There is none."""
        self._ensure_finalized()
        return 0


@contextmanager
def _one_pass(codegen: Any) -> Iterator[None]:
    """Functions compiled meanwhile are parts.

    numba would optimise each function with all that it calls and make it executable, then the function that calls it
    with all of these again, and so on. Here the whole is optimised and emitted once.
    """
    changed = {"_library_class": _Part, "_add_module": lambda module: None, "set_env": lambda name, env: None}
    vars(codegen).update(changed)
    try:
        yield
    finally:
        for name in changed:
            delattr(codegen, name)


def _build(dispatcher: Any, codegen: Any, kinds: tuple[Any, ...], entries: int) -> Any:
    dispatcher.compile(kinds)
    compiled = dispatcher.overloads[kinds]
    library = codegen.create_library(f"{dispatcher.py_func.__name__}.entry")
    module = library.create_ir_module(ENTRY)
    _Entry(dispatcher.targetctx, module, compiled, entries).write()
    library.add_ir_module(module)
    library.add_linking_library(compiled.library)
    library.finalize()
    CPUCodeLibrary._optimize_final_module(library)
    final = library._final_module
    outside = {function.name for function in final.functions if function.is_declaration}
    missing = {name for name in outside - LIBRARY - _PYTHON.keys() if not name.startswith("llvm.")}
    if missing:
        raise InternalError(f"{dispatcher.py_func.__name__}: compiled code needs {', '.join(sorted(missing))}")
    return final


class _Entry:
    """Writes the entry: checks and unpacks the arguments, calls the function, packs its result."""

    def __init__(self, context: Any, module: ir.Module, compiled: Any, entries: int) -> None:
        self.context, self.module, self.compiled = context, module, compiled
        kind = ir.FunctionType(_OBJECT, [_OBJECT, _OBJECT.as_pointer(), _WORD])
        function = ir.Function(module, kind, ENTRY)
        self.given, self.number = function.args[1:]
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        table = ir.ArrayType(_OBJECT, len(FIXED) + entries)
        self.table = ir.GlobalVariable(module, table, TABLE)
        self.table.initializer = ir.Constant(table, None)
        self.next_entry = count(len(FIXED))
        self.python = {
            name: ir.Function(module, ir.FunctionType(kinds[0], kinds[1:]), name) for name, kinds in _PYTHON.items()
        }

    def write(self) -> None:
        """The whole function."""
        builder, signature = self.builder, self.compiled.signature
        self._require(builder.icmp_signed("==", self.number, ir.Constant(_WORD, len(signature.args))))
        values = []
        for place, kind in enumerate(signature.args):
            given = builder.load(builder.gep(self.given, [ir.Constant(_WORD, place)]))
            values.append(self._unpack(given, kind))
        function = self.context.declare_function(self.module, self.compiled.fndesc)
        thread = self._call("PyEval_SaveThread")
        status, result = self.context.call_conv.call_function(
            builder, function, signature.return_type, signature.args, values
        )
        self._call("PyEval_RestoreThread", thread)
        with builder.if_then(builder.not_(status.is_ok)):
            builder.ret(self._shared("failed"))
        builder.ret(self._pack(result, signature.return_type))

    def _unpack(self, given: Any, kind: Any) -> Any:
        """The value of an object as compiled functions take it; the entry ends if the object has another type."""
        builder = self.builder
        if isinstance(kind, types.BaseTuple):
            self._require(self._is(self._type(given), self._entry(next(self.next_entry))))
            self._require(builder.icmp_signed("==", self._call("PyTuple_Size", given), ir.Constant(_WORD, len(kind))))
            parts = []
            for place, part in enumerate(kind):
                item = self._call("PyTuple_GetItem", given, ir.Constant(_WORD, place))
                parts.append(self._unpack(item, part))
            return self.context.make_tuple(builder, kind, parts)
        if isinstance(kind, types.Array):
            return self._unpack_array(given, kind)
        if kind == types.float64:
            own = self._type(given)
            is_float = self._call("PyType_IsSubtype", own, self._fixed("float"))
            self._require(builder.icmp_signed("!=", is_float, ir.Constant(_INT, 0)))
            return self._call("PyFloat_AsDouble", given)
        if kind == types.int64:
            self._require_one_of(given, "int", "int64")
            return self._call("PyNumber_AsSsize_t", given, ir.Constant(_OBJECT, None))
        if kind == types.boolean:
            self._require_one_of(given, "bool", "bool_")
            return builder.icmp_signed("!=", self._call("PyObject_IsTrue", given), ir.Constant(_INT, 0))
        raise InternalError(f"compiled functions take numbers, arrays and tuples of these, not {kind}")

    def _unpack_array(self, given: Any, kind: Any) -> Any:
        builder = self.builder
        self._require(self._is(self._type(given), self._fixed("array")))
        self._require(self._is(self._field(given, DTYPE, _OBJECT), self._entry(next(self.next_entry))))
        dimensions = self._field(given, DIMENSIONS, _INT)
        self._require(builder.icmp_signed("==", dimensions, ir.Constant(_INT, kind.ndim)))
        order = {"C": _C_ORDER, "F": _F_ORDER, "A": 0}[kind.layout]
        asked = _ALIGNED | _WRITEABLE | (_C_ORDER if kind.layout == "C" else _C_ORDER | _F_ORDER)
        wanted = order | _ALIGNED | (_WRITEABLE if kind.mutable else 0)
        flags = builder.and_(self._field(given, FLAGS, _INT), ir.Constant(_INT, asked))
        self._require(builder.icmp_signed("==", flags, ir.Constant(_INT, wanted)))
        array = self.context.make_array(kind)(self.context, builder)
        populate_array(
            array,
            data=builder.bitcast(self._field(given, DATA, _OBJECT), array.data.type),
            shape=self._sizes(given, SHAPE, kind.ndim),
            strides=self._sizes(given, STRIDES, kind.ndim),
            itemsize=1 if kind.dtype is types.boolean else np.dtype(kind.dtype.name).itemsize,
            meminfo=None,
        )
        return array._getvalue()

    def _pack(self, value: Any, kind: Any) -> Any:
        """The object for a value."""
        builder = self.builder
        if isinstance(kind, types.NoneType):
            return self._shared("none")
        if isinstance(kind, types.BaseTuple):
            packed = self._call("PyTuple_New", ir.Constant(_WORD, len(kind)))
            for place, part in enumerate(kind):
                item = self._pack(builder.extract_value(value, place), part)
                self._call("PyTuple_SetItem", packed, ir.Constant(_WORD, place), item)
            return packed
        if isinstance(kind, types.Float):
            return self._call("PyFloat_FromDouble", value if value.type == _DOUBLE else builder.fpext(value, _DOUBLE))
        if isinstance(kind, types.Boolean):
            return self._call("PyBool_FromLong", builder.zext(value, _WORD))
        if not isinstance(kind, types.Integer):
            raise InternalError(f"compiled functions return numbers and tuples of these, not {kind}")
        if kind.signed:
            return self._call("PyLong_FromLongLong", value if value.type == _WORD else builder.sext(value, _WORD))
        word = value if value.type == _WORD else builder.zext(value, _WORD)
        return self._call("PyLong_FromUnsignedLongLong", word)

    def _require(self, condition: Any) -> None:
        with self.builder.if_then(self.builder.not_(condition)):
            self.builder.ret(self._shared("mismatch"))

    def _require_one_of(self, given: Any, first: str, second: str) -> None:
        own = self._type(given)
        self._require(self.builder.or_(self._is(own, self._fixed(first)), self._is(own, self._fixed(second))))

    def _is(self, one: Any, other: Any) -> Any:
        return self.builder.icmp_unsigned("==", one, other)

    def _call(self, name: str, *values: Any) -> Any:
        return self.builder.call(self.python[name], values)

    def _type(self, given: Any) -> Any:
        return self._field(given, TYPE, _OBJECT)

    def _field(self, given: Any, offset: int, kind: ir.Type) -> Any:
        address = self.builder.gep(given, [ir.Constant(_WORD, offset)])
        return self.builder.load(self.builder.bitcast(address, kind.as_pointer()))

    def _sizes(self, given: Any, offset: int, number: int) -> list[Any]:
        start = self._field(given, offset, _WORD.as_pointer())
        return [self.builder.load(self.builder.gep(start, [ir.Constant(_WORD, axis)])) for axis in range(number)]

    def _entry(self, number: int) -> Any:
        place = [ir.Constant(_INT, 0), ir.Constant(_INT, number)]
        return self.builder.load(self.builder.gep(self.table, place))

    def _fixed(self, name: str) -> Any:
        return self._entry(list(FIXED).index(name))

    def _shared(self, name: str) -> Any:
        """An object of the table as a result: the caller owns a reference."""
        found = self._fixed(name)
        self._call("Py_IncRef", found)
        return found
