"""The outcome of a command, and the arguments of a small question."""

import json
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """The outcome of a command: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)


Runner = Callable[..., Run]

SMALL = ("verify", "M-FNN-100", "--image", "mnist:69990", "--perturb", "brightness:0..0.2")
"""A question with a dozen regions: CR everywhere, AR everywhere at 25 % but only in part of the domain at 3.0."""

SEARCHES = ("bfs", "gbs", "boundary")
