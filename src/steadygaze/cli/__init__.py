"""The command line: parse, call the api, print, exit code. `main` is the entry point, `app` the commands."""

from .entry_point import app, main

__all__ = ["app", "main"]
