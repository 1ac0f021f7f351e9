"""Loads the tiling of a stored search, after checks that its arrays fit each other, the question and the answer."""

from pathlib import Path
from typing import Any

import numpy as np

from ...errors import StoreError
from ...labels import Stop, Verdict
from ...question import Question
from ...results.array_file import read_arrays
from ...results.arrays import SCHEMA_VERSION
from ...results.store import MAP
from .search_arrays import SHAPES, Arrays, checked_arrays, pack_shares, read_components, read_regions, read_shares
from .search_tiling import SearchTiling
from .visited import ATTENTIONS, CLASSIFICATIONS, Visited
from .visited_shares import unknown_shares


def restore_tiling(content: dict[str, Any], folder: Path, question: Question) -> SearchTiling:
    """The search stored in a directory; StoreError if its arrays do not fit each other and the answer."""
    arrays = read_search_arrays(folder / MAP)
    try:
        arrays = checked_arrays(arrays, content, question)
    except StoreError as error:
        raise StoreError(f"{folder / MAP}: {error}") from None
    found = _rebuild(content, arrays, question)
    verdict = found.own_answer.verdict(question.property)
    told = content["verdict"]
    if content["schema_version"] < SCHEMA_VERSION and told == Verdict.ROBUST.value:
        told = Verdict.UNDECIDED.value  # earlier versions took the visited regions for a proof
    if (verdict.value, found.search_status.value) != (told, content["status"]):
        raise StoreError(f"{folder}: its regions contradict its verdict; the result is damaged: run it again")
    return found


def read_search_arrays(path: Path) -> Arrays:
    """The arrays of a stored search; earlier versions stored no shares."""
    try:
        return read_arrays(path, list(SHAPES))
    except StoreError:
        earlier = read_arrays(path, [name for name in SHAPES if name != "shares"])
        return earlier | pack_shares(unknown_shares())


def _rebuild(content: dict[str, Any], arrays: Arrays, question: Question) -> SearchTiling:
    line, told = content["line"], content.get("confirmation")
    regions = read_regions(arrays, question.perturbed.domain)
    names = ("margin", "inconsistency", "is_following", "is_doubtful")
    columns = zip(*(arrays[name].tolist() for name in names), strict=True)
    labels = zip(arrays["classification"].tolist(), arrays["attention"].tolist(), strict=True)
    visited = [
        Visited(
            region, CLASSIFICATIONS[code], ATTENTIONS[other], tuple(margin), tuple(reach), bool(follows), bool(doubt)
        )
        for region, (code, other), (margin, reach, follows, doubt) in zip(regions, labels, columns, strict=True)
    ]
    return SearchTiling(
        question=question,
        method=str(content["method"]),
        w_delta=float(content["w_delta"] or 0.0),
        line=None if line is None else np.array(line, dtype=np.float64),
        visited=visited,
        face_checks=int(content["face_checks"]),
        lps=int(content["lps"]),
        failures=int(content["failures"]),
        shares=read_shares(arrays),
        stopped=None if content["stopped"] is None else Stop(str(content["stopped"])),
        # A sum of volumes may round to 1; a search that covers the domain has a confirmation.
        is_whole=content["visited_share"] == 1.0 and not (content["status"] == "Robust" and told is None),
        components=read_components(content, arrays, regions),
        confirmation=None if told is None else Verdict(told),
        stored=arrays,
    )
