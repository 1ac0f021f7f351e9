"""Tables of campaigns to the terminal or into a file: refuses to replace one unless told to."""

import sys
from pathlib import Path

from ..campaign.stored_campaign import write_whole
from ..errors import StoreError


def refuse_existing(out: Path | None, *, force: bool) -> None:
    """Raise StoreError where a file is in the way; asked before anything is computed."""
    if out is not None and out.exists() and not force:
        raise StoreError(f"{out}: is there already; give --force to replace it, or another --out")


def put_table(content: str | bytes, out: Path | None, *, what: str = "") -> None:
    """Print a table, or write it into a file as a whole and say so."""
    if out is None:
        sys.stdout.write(str(content))
        return
    try:
        write_whole(out, content)
    except OSError as error:
        raise StoreError(f"{out}: cannot be written ({error.strerror}); choose another --out") from None
    print(f"wrote {out}{what}", file=sys.stderr)
