"""Convex polygons of the subdivision."""
