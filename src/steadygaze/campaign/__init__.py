"""Many problems in one go: a plan, worker processes with limits, rows on disk, tables. See docs/campaign.md."""

from .plan import Plan, Task
from .plan_file import read_plan
from .run import Advance, Report, run_campaign
from .store import Store
from .table import make_records

__all__ = ["Advance", "Plan", "Report", "Store", "Task", "make_records", "read_plan", "run_campaign"]
