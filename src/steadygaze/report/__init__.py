"""Results for people: figures by kind, the parts that figures share (drawing), and the HTML report (page)."""

FORMATS = ("png", "svg", "pdf")
"""File formats of figures; defined here, so options can be checked before matplotlib is loaded."""
