"""Problems that sleep, allocate, crash or fail, solved by worker processes in place of `worker.solve`.

Imports only the standard library, so a process starts at once.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path


def solve(question: dict) -> dict:
    """Do what the question says; the lines of `log` count the questions."""
    if "log" in question:
        with Path(question["log"]).open("a", encoding="ascii") as stream:
            stream.write(f"{question['name']}\n")
    act = question["act"]
    if act == "sleep":
        time.sleep(question.get("seconds", 60.0))
    elif act == "allocate":
        held = bytearray(question["mib"] * 2**20)
        held[::4096] = bytes(len(held[::4096]))
        time.sleep(question.get("seconds", 0.0))
    elif act == "hold":
        ctypes.PyDLL(None).sleep(60)  # native code that never lets the interpreter go
    elif act == "abort":
        os.abort()
    elif act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif act == "exit":
        os._exit(7)
    elif act == "raise":
        raise ValueError("no such\nthing")
    elif act == "memory":
        raise MemoryError
    elif act == "print":
        print("chatter", flush=True)
        print("more chatter", file=sys.stderr, flush=True)
    elif act == "nan":
        return {"status": "Robust", "value": float("nan")}
    return {"status": "Robust", "name": question.get("name"), "pid": os.getpid()}


def solve_task(question: dict) -> dict:
    """The same for a question of a campaign: the model's name is the act, and the image's name its duration."""
    task = question["task"]
    asked = {"name": task["key"], "act": task["model"], "seconds": float(task["image"]), "mib": 400}
    if "FAULTS_LOG" in os.environ:
        asked["log"] = os.environ["FAULTS_LOG"]
    return {"status": solve(asked)["status"], "verdict": "undecided", "regions": len(task["key"])}


def log_to(needs: list) -> None:
    """A preparation that names the log, for processes that tests do not start themselves."""
    os.environ["FAULTS_LOG"] = needs[0]


def refuse(needs: list) -> None:
    """A preparation that fails."""
    raise RuntimeError("cannot be prepared")
