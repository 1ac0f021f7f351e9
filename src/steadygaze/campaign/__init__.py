"""Many problems in one go: a plan, worker processes with limits, rows on disk, tables. See docs/campaign.md."""

from .plan_file import read_plan
from .run import CampaignProgress, Report, run_campaign
from .stored_campaign import Plan, Store, Task
from .tables import make_records

__all__ = ["CampaignProgress", "Plan", "Report", "Store", "Task", "make_records", "read_plan", "run_campaign"]
