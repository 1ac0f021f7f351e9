"""Writes the table of columns in docs/campaign.md from the schema itself: `python docs/make_campaign.py`."""

from pathlib import Path

from steadygaze.campaign.columns import ANSWER, MEASURED, QUESTION

TARGET = Path(__file__).with_name("campaign.md")
BEGIN, END = "<!-- columns: written by docs/make_campaign.py -->\n", "<!-- end of columns -->\n"


def table() -> str:
    """All columns, in order."""
    parts = {"the question": QUESTION, "the answer": ANSWER, "measurements": MEASURED}
    lines = []
    for title, columns in parts.items():
        lines += [f"### {title.capitalize()}", "", "| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{each.name}` | {each.kind} | {each.meaning.replace('|', chr(92) + '|')} |" for each in columns]
        lines.append("")
    return "\n".join(lines)


def page() -> str:
    """The page with the current table."""
    text = TARGET.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
