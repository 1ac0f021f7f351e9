"""Shared by the tests: oracles, small networks, readers of results, stand-ins."""
