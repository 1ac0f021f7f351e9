"""--require: reading comparisons, and judging them by proved bounds."""

import pytest

from steadygaze.errors import OptionError
from steadygaze.labels import Verdict
from steadygaze.requirement import NAMES, Outcome, Requirement, Term


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("CR&AR>=0.9", [("CR&AR", ">=", 0.9)]),
        (" cr & ar >= 90 % ", [("CR&AR", ">=", 0.9)]),
        ("AR&CR>.5", [("CR&AR", ">", 0.5)]),
        ("MR<1%", [("MR", "<", 0.01)]),
        ("Undecided<=1e-9", [("undecided", "<=", 1e-9)]),
        ("CR>=1 and IR<0.5, AR>0", [("CR", ">=", 1.0), ("IR", "<", 0.5), ("AR", ">", 0.0)]),
        ("CR>=1 AND IR<0.5", [("CR", ">=", 1.0), ("IR", "<", 0.5)]),
        ("CR at least 90% and MR less than 1%", [("CR", ">=", 0.9), ("MR", "<", 0.01)]),
    ],
)
def test_reads_comparisons(text, terms):
    assert Requirement.parse(text).terms == tuple(Term(*term) for term in terms)


@pytest.mark.parametrize("name", NAMES)
def test_reads_every_name(name):
    assert Requirement.parse(f"{name}>=0.5").terms[0].name == name


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "'' is not a comparison"),
        ("nonsense", "'nonsense' is not a comparison"),
        ("CR", "'CR' is not a comparison"),
        ("CR>=0.5 and", "'' is not a comparison"),
        ("0.9<=CR", "no share '0.9'"),
        ("CX>=0.5", "no share 'CX'"),
        ("undecide<0.1", "Did you mean undecided?"),
        ("CR&MR>=0.5", "no share 'CR&MR'"),
        ("CR&>=0.5", "no share 'CR&'"),
        ("CR==0.5", "'==' is not a comparison"),
        ("CR=>0.5", "'=>' is not a comparison"),
        ("CR>=90", "more than the whole domain"),
        ("CR>=101%", "more than the whole domain"),
        ("CR>=-0.1", "'-0.1' is not a share"),
        ("CR>=nan", "'nan' is not a share"),
        ("CR>=", "'' is not a share"),
        ("CR>=%", "'%' is not a share"),
        ("0.1<CR<0.2", "'0.1<CR<0.2' is not a comparison"),
    ],
)
def test_refuses_anything_else(text, complaint):
    with pytest.raises(OptionError) as caught:
        Requirement.parse(text)
    assert complaint in str(caught.value) and str(caught.value).startswith("--require")


@pytest.mark.parametrize(
    ("sign", "outcomes"),
    [
        # bounds:  above, from 0.5 on, around, up to 0.5, below, exactly 0.5
        (">=", "met met open open not met"),
        (">", "met open open not not not"),
        ("<=", "not open open met met met"),
        ("<", "not not open open met not"),
    ],
)
def test_met_is_proved_and_not_met_is_disproved(sign, outcomes):
    words = {"met": Outcome.MET, "open": Outcome.UNDECIDED, "not": Outcome.NOT_MET}
    bounds = [(0.6, 0.9), (0.5, 0.9), (0.4, 0.6), (0.1, 0.5), (0.1, 0.4), (0.5, 0.5)]
    requirement = Requirement.parse(f"CR{sign}0.5")
    assert [requirement.judge({"CR": pair}) for pair in bounds] == [words[word] for word in outcomes.split()]


def test_one_term_that_is_not_met_decides():
    requirement = Requirement.parse("CR>=0.5 and AR>=0.5 and MR<=0.1")
    area = {"CR": (0.4, 0.9), "AR": (0.1, 0.2), "MR": (0.0, 0.1)}
    assert requirement.judge(area) is Outcome.NOT_MET
    assert requirement.judge(area | {"AR": (0.5, 0.9)}) is Outcome.UNDECIDED
    assert requirement.judge(area | {"AR": (0.5, 0.9), "CR": (0.5, 0.9)}) is Outcome.MET


def test_robust_is_about_the_verdict():
    requirement = Requirement.parse("Robust and CR>=0.5")
    assert requirement.needs_shares and not Requirement.parse("robust").needs_shares
    outcomes = [requirement.judge({"CR": (0.5, 1.0)}, verdict) for verdict in Verdict]
    assert outcomes == [Outcome.MET, Outcome.NOT_MET, Outcome.UNDECIDED]
    assert requirement.judge({"CR": (0.1, 0.2)}, Verdict.ROBUST) is Outcome.NOT_MET


def test_exit_codes():
    assert [outcome.exit_code for outcome in (Outcome.MET, Outcome.NOT_MET, Outcome.UNDECIDED)] == [0, 10, 3]
