"""Results as people see them: figures by kind, what figures share (drawing), and the HTML report (page)."""

FORMATS = ("png", "svg", "pdf")
"""File formats of figures; they stand here so that options can be checked before matplotlib is loaded."""
