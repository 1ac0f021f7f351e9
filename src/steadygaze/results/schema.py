"""Versions of what is stored: which are read, and what to know about older ones."""

SCHEMA_VERSION = 3
"""Grows whenever a reader of the older form would misread the newer one."""

READ_VERSIONS = (2, 3)

OLDER = (
    "stored by an earlier version (schema 2), whose error bounds could miss violations on networks made for that, and "
    "which took kinks for 1e-10 wide; verify again for what is proved today"
)
"""What a reader of an older result should know."""
