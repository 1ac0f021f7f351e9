"""Proofs at scale: bounds decide boxes of the domain, or exact regions if bounds cannot."""
