"""The script of a worker process: reads questions from a pipe, sends answers back, and ends when its parent does.

Needs only the standard library, so a process starts at once, and imports the answering function by name. Knows no
limits: `worker_pool` enforces them from outside.
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

PARENT_GONE = 1  # nobody reads this exit code
_SET_PARENT_DEATH_SIGNAL = 1


def main(arguments: list[str]) -> None:
    """Serve until the pipe is closed. Arguments: pipe, lifeline, the parent's process id, whether it may signal."""
    pipe, lifeline, parent, is_signalled = (int(word) for word in arguments)
    # The parent decides when a worker ends; Ctrl-C and a shutdown reach it first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_with_parent(lifeline, parent if is_signalled else None)
    with contextlib.suppress(OSError):
        # If memory runs out, the system should end this process, not the campaign.
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    connection = Connection(pipe)
    with contextlib.suppress(EOFError, OSError):
        duty = json.loads(connection.recv_bytes())
        if duty["prepare"] is not None:
            load(duty["prepare"])(duty["needs"])
        solve = load(duty["solve"])
        # Imported modules stay in memory: garbage collection after every answer can skip them.
        gc.collect()
        gc.freeze()
        connection.send_bytes(b'{"is_ready": true}')
        serve(connection, solve)


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
        measured = {"seconds": time.perf_counter() - started, "peak_mib": peak_mib() if is_reset else None}
        answer = json.dumps(json.loads(message) | measured).encode()
        del message
        give_back_memory()  # before the answer: the process is then ready for the next question
        connection.send_bytes(answer)


def load(name: str) -> Callable[..., Any]:
    """The function that `module:function` names."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def end_with_parent(lifeline: int, parent: int | None) -> None:
    """End this process, whatever it is doing, as soon as the parent is gone.

    On Linux the system does it if the main thread of the parent started this process. On all systems a thread waits
    until the other end of the lifeline is closed.
    """

    def wait() -> None:
        os.read(lifeline, 1)
        os._exit(PARENT_GONE)

    threading.Thread(target=wait, daemon=True).start()
    if parent is not None and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(PARENT_GONE)


def reset_peak() -> bool:
    """Reset the peak memory of this process; returns whether that worked."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def peak_mib() -> float | None:
    """Peak memory since the last reset, in MiB; None if unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def give_back_memory() -> None:
    """Collect garbage and return free memory to the system: the memory of one problem must not count for the next."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    main(sys.argv[1:])
