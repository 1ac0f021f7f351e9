"""Regions of the compound network: the subdivision engine and its result arrays."""
