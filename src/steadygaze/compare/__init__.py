"""Several results side by side: what differs, their shares, difference maps, rankings, and a figure of them."""
