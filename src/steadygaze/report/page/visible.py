"""Text of users with its invisible controls of direction written out, so that they cannot turn the text around them.

A class or file name may hold them; the sentence that names it would then be read in another order than it is written.
"""

import re

_CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""The text with escapes in place of controls of direction.

    >>> visible("a\u202eb"), visible("été")
    ('a\\u202eb', 'été')
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def visible_value(value: object) -> object:
    """What a template writes: text made visible, markup and other values as they are."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
