"""Several results beside each other: what differs, areas, difference maps, rankings, and their picture."""
