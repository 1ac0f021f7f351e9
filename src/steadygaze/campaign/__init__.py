"""Many problems in one go: a plan, worker processes with limits, rows on disk, tables. See docs/campaign.md."""
