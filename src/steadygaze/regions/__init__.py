"""Regions of the compound network: the subdivision engine and the arrays that it delivers."""
