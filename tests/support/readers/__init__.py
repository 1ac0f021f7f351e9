"""Readers of results: they turn arrays of the engines into plain values, and compare them with oracles."""
