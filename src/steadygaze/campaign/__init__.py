"""Many problems in one go: a plan, worker processes with limits, rows on disk, tables. See docs/campaign.md."""

INSIGHTS = ("collapse", "silent", "delta", "filter", "ranking")
"""Tables of findings; named here, so options can be checked before anything is loaded."""
