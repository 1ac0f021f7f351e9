"""Proofs at scale: boxes of the domain decided by bounds, and exactly where bounds cannot."""
