"""The command line: parses options, calls the api, prints. `main` is the entry point, `app` holds the commands."""

from .entry_point import app, main

__all__ = ["app", "main"]
