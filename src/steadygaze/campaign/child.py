"""What runs inside a worker process: questions come in through a pipe, answers go out; it ends when its parent does.

A script of its own that needs nothing but the standard library, so that a process is there at once; the function that
answers is imported by name. Knows no limits: `process` enforces them from outside.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

PARENT_GONE = 1
"""Exit code that nobody reads."""
_SET_PARENT_DEATH_SIGNAL = 1


def main(arguments: list[str]) -> None:
    """Serve until the pipe is closed. Arguments: pipe, lifeline, the parent's process id, whether it may signal."""
    pipe, lifeline, parent, is_signalled = (int(word) for word in arguments)
    # The parent decides when a worker ends; Ctrl-C and a shutdown reach it first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_with_parent(lifeline, parent if is_signalled else None)
    die_first()
    connection = Connection(pipe)
    try:
        duty = json.loads(connection.recv_bytes())
        if duty["prepare"] is not None:
            load(duty["prepare"])(duty["needs"])
        solve = load(duty["solve"])
        # What was imported stays for good: collecting garbage after every answer need not look at it.
        gc.collect()
        gc.freeze()
        connection.send_bytes(b'{"is_ready": true}')
        serve(connection, solve)
    except (EOFError, OSError):
        return


def serve(connection: Connection, solve: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer questions one by one; a failure is an answer too."""
    while True:
        question = json.loads(connection.recv_bytes())
        connection.send_bytes(b'{"is_taken": true}')
        is_reset = reset_peak()
        started = time.perf_counter()
        try:
            message = json.dumps({"answer": solve(question)}, allow_nan=False)
        except MemoryError:
            message = json.dumps({"reason": "out of memory"})
        except Exception as error:
            message = json.dumps({"reason": " ".join(f"{type(error).__name__}: {error}".split())})
        seconds = time.perf_counter() - started
        measured = {"seconds": seconds, "peak_mib": peak_mib() if is_reset else None}
        answer = json.dumps(json.loads(message) | measured).encode()
        del message
        give_back_memory()  # before answering, so that the next question is taken at once
        connection.send_bytes(answer)


def load(name: str) -> Callable[..., Any]:
    """The function that `module:function` names."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def end_with_parent(lifeline: int, parent: int | None) -> None:
    """End this process, whatever it is doing, as soon as the parent is gone.

    The system does it where it can (Linux; only for a parent that is the main thread of its process, since it is the
    thread that counts). Everywhere a thread waits for the other end of the lifeline to be closed.
    """

    def wait() -> None:
        os.read(lifeline, 1)
        os._exit(PARENT_GONE)

    threading.Thread(target=wait, daemon=True).start()
    if parent is not None and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(PARENT_GONE)


def die_first() -> None:
    """Let the system, where its memory runs out, end this process rather than the campaign's own."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


def reset_peak() -> bool:
    """Let the system forget the most memory this process ever held; tells whether it could."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def peak_mib() -> float | None:
    """The most memory since the last reset, in MiB; None where the system does not tell."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except (OSError, ValueError, IndexError):
        return None
    return None


def give_back_memory() -> None:
    """Collect garbage and return what is free to the system: what one problem held must not count for the next."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return


if __name__ == "__main__":
    main(sys.argv[1:])
