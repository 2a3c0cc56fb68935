"""percid from Python, by ctypes: a counter, a histogram and a stack.

libpercid.so has every function under its plain name, those too that are inline in C. A call through
ctypes takes some 300 ns and an addition 1 ns, so a program in Python gains no speed by percid. What it
gains is counters that it shares with the C code that it runs, and totals that no thread has to stop
for: ctypes releases the interpreter's lock during calls.

Objects live in memory that ctypes owns, which does not move. They must be destroyed by nobody while
other threads use them; here they are as old as the program.
"""

import ctypes
import os

_lib = ctypes.CDLL("libpercid.so.1")


def _function(name, result, *arguments):
    function = getattr(_lib, name)
    function.restype = result
    function.argtypes = arguments
    return function


class _Word(ctypes.Structure):
    """percid_counter and percid_histogram: a word, at first 0."""

    _fields_ = [("word", ctypes.c_uint64)]


_word = ctypes.POINTER(_Word)
_pointer = ctypes.c_void_p
_visitor = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

_version = _function("percid_version", ctypes.c_char_p)
_init = _function("percid_init", ctypes.c_int)
_source_name = _function("percid_source_name", ctypes.c_char_p, ctypes.c_int)

_counter_add = _function("percid_counter_add", None, _word, ctypes.c_int64)
_counter_sum = _function("percid_counter_sum", ctypes.c_int64, _word)
_counter_take = _function("percid_counter_take", ctypes.c_int64, _word)

_histogram_record = _function("percid_histogram_record", None, _word, ctypes.c_uint64)
_histogram_snapshot = _function("percid_histogram_snapshot", ctypes.c_int, _word, ctypes.POINTER(_pointer))
_snapshot_count = _function("percid_snapshot_count", ctypes.c_uint64, _pointer)
_snapshot_quantile = _function(
    "percid_snapshot_quantile", ctypes.c_int, _pointer, ctypes.c_double, ctypes.POINTER(ctypes.c_uint64)
)
_snapshot_free = _function("percid_snapshot_free", None, _pointer)

_stack_create = _function(
    "percid_stack_create", ctypes.c_int, ctypes.POINTER(_pointer), ctypes.c_uint32, ctypes.c_size_t
)
_stack_push = _function("percid_stack_push", ctypes.c_int, _pointer, _pointer)
_stack_pop = _function("percid_stack_pop", _pointer, _pointer)
_stack_drain = _function("percid_stack_drain", ctypes.c_int64, _pointer, _visitor, _pointer)


def _check(result):
    """Errors are errno values with a minus sign."""
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def version():
    return _version().decode()


def source():
    """Where this process gets its concurrency IDs from."""
    return _source_name(_init()).decode()


class Counter:
    """Added to by any thread."""

    def __init__(self):
        self._word = _Word()

    def add(self, n=1):
        _counter_add(self._word, n)

    def sum(self):
        return _counter_sum(self._word)

    def take(self):
        """The sum, which becomes 0. No addition is lost or counted twice."""
        return _counter_take(self._word)


class Histogram:
    """Of values from 0 to 2**64-1, in buckets that are 1/64 wide."""

    def __init__(self):
        self._word = _Word()

    def record(self, value):
        _histogram_record(self._word, value)

    def quantiles(self, *shares):
        """How many values there are, and for each share what that share of them does not exceed."""
        snapshot = _pointer()
        _check(_histogram_snapshot(self._word, ctypes.byref(snapshot)))
        try:
            found = []
            for share in shares:
                value = ctypes.c_uint64()
                _check(_snapshot_quantile(snapshot, share, ctypes.byref(value)))
                found.append(value.value)
            return _snapshot_count(snapshot), found
        finally:
            _snapshot_free(snapshot)


class Stack:
    """Of numbers from 1 to 2**64-1, last in first out on every CPU: to C they are pointers."""

    UNBOUNDED = ctypes.c_size_t(-1).value

    def __init__(self, capacity=1000, shared=UNBOUNDED):
        self._handle = _pointer()
        _check(_stack_create(ctypes.byref(self._handle), capacity, shared))

    def push(self, number):
        _check(_stack_push(self._handle, number))

    def pop(self):
        """None if there is no number on this CPU, nor on the list that all share."""
        return _stack_pop(self._handle)

    def drain(self):
        """All numbers, from wherever they are."""
        found = []
        visitor = _visitor(lambda item, _: found.append(item))
        _check(_stack_drain(self._handle, visitor, None))
        return found
