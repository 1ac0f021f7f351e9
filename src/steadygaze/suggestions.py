"""Suggestions for misspelt words: the known word that is the fewest typing mistakes away."""

from collections.abc import Iterable

BEGUN = 3
"""From this many letters on, the beginning of a known word counts as that word."""


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """A sentence with the nearest known word, after a leading blank; empty if no word is near.

    >>> did_you_mean("bsf", ["map", "bfs", "gbs"]), did_you_mean("colour", ["map", "bfs"])
    (' Did you mean bfs?', '')
    """
    found = nearest_word(text, known)
    return "" if found is None else f" Did you mean {found}?"


def nearest_word(text: str, known: Iterable[str]) -> str | None:
    """The known word that begins with the text, or is within one mistake for every three letters, at least one.

    >>> nearest_word("PNGG", ["svg", "png"]), nearest_word("x", ["cr", "ar"]), nearest_word("bou", ["gbs", "boundary"])
    ('png', None, 'boundary')
    """
    known, given = list(known), text.strip().lower()
    begun = [word for word in known if len(given) >= BEGUN and word.lower().startswith(given)]
    if begun:
        return begun[0]
    most = max(1, len(given) // 3)
    ranked = [(count_mistakes(given, word.lower()), place, word) for place, word in enumerate(known)]
    near = [item for item in ranked if item[0] <= most and item[0] < len(given)]
    return min(near)[2] if near else None


def count_mistakes(first: str, second: str) -> int:
    """Letters to add, drop, change or swap with the next one (optimal string alignment).

    >>> count_mistakes("bsf", "bfs"), count_mistakes("bsf", "gbs"), count_mistakes("", "ab")
    (1, 2, 2)
    """
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        older, before, row = before, row, [i]
        for j, other in enumerate(second, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
