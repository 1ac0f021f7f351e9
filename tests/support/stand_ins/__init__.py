"""Replacements for the real thing: made-up results, false maps, unsound bounds, failing workers."""
