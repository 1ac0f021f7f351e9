"""Engines: each accepts or refuses a question, and runs it within a budget to a result."""
