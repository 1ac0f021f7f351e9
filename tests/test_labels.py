"""Labels, verdicts and statuses are named by the types of labels.py, not spelt out elsewhere."""

import ast
from collections import Counter
from pathlib import Path

from steadygaze.labels import ATTENTIONS, CLASSIFICATIONS, SHARES, Joint, Kept, Label, Status, Verdict

SOURCE = Path(__file__).parents[1] / "src" / "steadygaze"
WORDS = {*Label, *Joint, *Verdict, *Status}

OTHER_MEANINGS = {
    "campaign/columns.py": 1,  # the column of a table
    "campaign/set_requirement.py": 2,  # the same column
    "cli/comparison_text.py": 3,  # the key of a difference in its summary
    "engines/refine/merged_answer.py": 1,  # a kind of guarantee
    "report/page/facts.py": 2,  # the same kind, and its row
    "requirement.py": 1,  # an outcome
    "results/summary.py": 1,  # the key of a number of regions
}
"""How often each module spells the word `undecided` where it is no label."""


def test_labels_are_spelt_in_labels_alone() -> None:
    found: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        if path == SOURCE / "labels.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in WORDS:
                name = path.relative_to(SOURCE).as_posix()
                assert node.value == Label.UNDECIDED, f"{name}:{node.lineno}: use the names of labels.py"
                found[name] += 1
    assert found == OTHER_MEANINGS, "use Label.UNDECIDED for labels"


def test_every_combination_has_a_name_and_words() -> None:
    names = [
        Joint.of(Label.of_classification(first), Label.of_attention(second))
        for first in (Kept.YES, Kept.NO)
        for second in (Kept.YES, Kept.NO)
    ]
    assert names == list(Joint)
    assert len({one.sentence for one in (*Label, *Joint)}) == len(Label) + len(Joint)
    assert {*SHARES} == {*CLASSIFICATIONS[:2], *ATTENTIONS[:2], *Joint}
