"""The formats that figures are written in. Imports nothing, so that options are checked before anything is loaded."""

FORMATS = ("png", "svg", "pdf")
