"""Attacks on the verifier: networks whose truth is known exactly, and an oracle that shares no code with the engines.

`polytopes` and `oracle` compute the truth in whole numbers; `nets`, `bumps`, `equivalent` and `wild` make networks;
`files` writes them; `judge` asks the verifier and compares. Only `judge` imports steadygaze.
"""
