"""Several results side by side: differences, shares, difference maps, rankings, and a figure."""
