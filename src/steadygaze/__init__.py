"""steadygaze: exact maps of where a classifier keeps its label and its attention."""
