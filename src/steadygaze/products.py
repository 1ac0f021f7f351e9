"""Matrix products on one thread."""

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def products_on_one_thread() -> AbstractContextManager:
    """Limit matrix products to one thread while the block runs.

    Their sums depend on the number of BLAS threads. Small products, one after another, are also slower on several
    threads that wait for each other, above all if other processes use the cores.
    """
    return _libraries(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _libraries(_modules: int) -> "ThreadpoolController":
    """The loaded libraries that have their own threads; the cache key, the number of modules, changes with imports."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 (commands that run nothing do not need it)

    return ThreadpoolController()
