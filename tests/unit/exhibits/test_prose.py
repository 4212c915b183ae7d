"""Sentences on results: numbers come from the evidence, comparisons hold, and anything else is refused."""

from pathlib import Path

import pytest
from small_table import exhibit, make_evidence, make_plan

from fedrepro.config import prose
from fedrepro.engine.fingerprints import RULE
from fedrepro.errors import UserError
from fedrepro.exhibits.prose import fill
from fedrepro.exhibits.prose.answers import OWN, _distances
from fedrepro.exhibits.prose.fill import filled
from fedrepro.exhibits.prose.forms import FORMS, Facts

ROOT = Path(__file__).parents[3]
A, B = "mlp-a100", "mlp-a01"
WHERE = "papers/x/tables/table3.yaml: remarks"
ACCURACIES = {
    ("fedavg", A): [89.0, 89.5, 90.6],
    ("fedlaw", A): [88.0, 90.5, 88.6],
    ("fedavg", B): [85.0, 85.2, 85.4],
    ("fedlaw", B): [86.0, 86.2, 87.0],
}


@pytest.fixture
def facts() -> Facts:
    """Means FedAvg 89.7 and 85.2, FedLAW 89.0333 and 86.4. Printed 89.29, 85.11 and 88.51, 86.30."""
    plan = make_plan("full")
    curves = {("fedlaw", A): {"gamma": [[0.5, 0.7, 0.9, 1.1, 1.3]] * 3}}
    table = exhibit(plan, make_evidence(plan, ACCURACIES, curves))
    distances = {"one, half": 3.391, "not run": None}
    return Facts({"table3": table}, own="table3", claims={"K1": "contradicted"}, distances=distances, readings=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{mean:fedavg/mlp-a100}", "89.70"),
        ("{mean:table3/fedavg/mlp-a100|digits=1}", "89.7"),
        ("{mean:fedavg,fedlaw/mlp-a100}", "89.70 and 89.03"),
        ("{mean:fedavg/mlp-a100,mlp-a01|as=range}", "85.20 to 89.70"),
        ("{mean:fedavg/mlp-a100,mlp-a01|as=largest}", "89.70"),
        ("{printed:fedlaw/mlp-a01}", "86.30"),
        ("{difference:fedavg/mlp-a100}", "+0.41"),
        ("{difference:fedlaw,fedavg/mlp-a01|as=mean}", "+0.10"),  # (0.10 + 0.09) / 2
        ("{seeds:fedavg/mlp-a01}", "85.00, 85.20 and 85.40"),
        ("{mean:fedavg/mlp-a01|seed=9}", "85.20"),
        ("{gain:fedlaw-fedavg/mlp-a01|seed=9;10} ({gains:fedlaw-fedavg/mlp-a01|seed=10;9})", "+1.30 (+1.00 and +1.60)"),
        ("{deviation:fedavg/mlp-a01}", "0.20"),
        ("{gain:fedlaw-fedavg/mlp-a100}", "−0.67"),
        ("{gain:fedlaw-fedavg/mlp-a100|sign=no, digits=1}", "0.7"),
        ("{gains:fedlaw-fedavg/mlp-a01}", "+1.00, +1.00 and +1.60"),
        ("{printed_gain:fedlaw-fedavg/mlp-a100}", "−0.78"),
        ("{printed_gain:fedlaw-fedavg/mlp-a100,mlp-a01|as=rise}", "+1.97"),  # 1.19 + 0.78
        ("{gain:fedlaw-fedavg/mlp-a100,mlp-a01|as=rise}", "+1.87"),  # 1.2 + 0.6667
        ("{gains:fedlaw-fedavg/mlp-a100,mlp-a01|as=rise}", "+2.00, +0.00 and +3.60"),
        ("{interval:fedlaw-fedavg/mlp-a100,mlp-a01|as=rise}", "−2.61 to +6.35"),
        # mean 1.2, deviation 0.34641: 4.30265 * 0.34641 / sqrt(3) = 0.8605
        ("{interval:fedlaw-fedavg/mlp-a01}", "+0.34 to +2.06"),
        # FedAvg ends at 85.0, 85.2, 85.4; after four rounds FedLAW has 85.5, 85.7, 86.5 and FedAvg 84.5, 84.7, 84.9.
        ("{rounds:fedlaw-fedavg,fedavg-fedavg/mlp-a01}", "4 and 5"),
        ("{mean:fedlaw/mlp-a100|metric=gamma, read=last(2)}", "1.200"),
        ("{mean:fedlaw/mlp-a100|metric=gamma, read=mean(1, 3), digits=2}", "0.70"),
        ("{mean:fedlaw/mlp-a100|metric=gamma;round, read=last(1), as=mean}", "2.650"),  # (1.3 + 4) / 2
        ("{mean:fedavg/mlp-a01|times=0.01, plus=0.5, digits=3}", "1.352"),
        ("{setting:fedavg/mlp-a100|key=rounds}", "5"),
        ("{setting:fedlaw/mlp-a100|key=fedlaw.server_lr}", "0.01"),
        ("{distance:one, half|digits=1} of {readings:complete}", "3.4 of 1"),
        ("{count:reproduced} of {count:judged}", "3 of 4"),
        ("{verdict:K1}", "contradicted"),
        ("{claims:contradicted} of {claims:judged}; {claims:not run}", "1 of 1; 0"),
        ("{status:fedavg,fedlaw/mlp-a100}", "reproduced and inconclusive"),
        ("{count:judged|table=table3}", "4"),
        ("{count:judged|seeds=3} and {count:judged|seeds=1}", "4 and 0"),
        ("{seed_count:fedavg,fedlaw/mlp-a100}", "3 and 3"),
        ("{side:fedlaw-fedavg/mlp-a100,mlp-a01} and {side:fedavg-fedlaw/mlp-a01}", "open and above and below"),
        ("It decides {holds:side:fedlaw-fedavg/mlp-a01 is above}.", "It decides."),
        ("{count:inconclusive} and {count:inconclusive|printed_seeds=30}", "1 and 0"),
        (
            "{paper:0.1} and {given:1.3}, CIFAR-10, top-3, Table 2 and section 5.4",
            "0.1 and 1.3, CIFAR-10, top-3, Table 2 and section 5.4",
        ),
        ("FedLAW is behind {holds:gain:fedlaw-fedavg/mlp-a100 < 0} FedAvg.", "FedLAW is behind FedAvg."),
        ("Higher {holds:70 < mean:fedavg/mlp-a01 < mean:fedavg/mlp-a100 <= 100}.", "Higher."),
        ("K1 falls {holds:verdict:K1 is contradicted}.", "K1 falls."),
        ("Open {holds:0 < interval:fedlaw-fedavg/mlp-a100,mlp-a01|as=rise;largest < 6.4}.", "Open."),
        ("Ahead {holds:seeds:fedlaw/mlp-a01 > mean:fedavg/mlp-a01} at each seed.", "Ahead at each seed."),
    ],
)
def test_what_it_says(text: str, said: str, facts: Facts) -> None:
    assert filled([text], facts, WHERE) == ([said], [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It ends at 89.70.", "'89.70' is a number that nothing fills"),  # a typed number, though it is right
        ("It gains +3 points.", "'+3' is a number that nothing fills"),
        ("FedLAW is ahead of FedAvg.", "'ahead' compares and no condition follows"),
        ("Three seeds do not decide.", "'decide' compares and no condition follows"),
        ("The interval includes zero.", "'includes zero' compares and no condition follows"),
        ("They show no gain.", "'no gain' compares and no condition follows"),
        ("Three seeds tell none of them apart.", "compares and no condition follows"),
        ("{mean:fedavg/mlp-a100}. Then it falls.", "'falls' compares and no condition follows"),
        # the condition says what the word says, and does not hold
        ("FedLAW is ahead {holds:gain:fedlaw-fedavg/mlp-a100 > 0}.", "does not hold (-0.666667 > 0)"),
        ("Ahead {holds:seeds:fedlaw/mlp-a100 > mean:fedavg/mlp-a100} at each seed.", "does not hold (88 > 89.7)"),
        ("K1 {holds:verdict:K1 is reproduced}", "does not hold (contradicted is reproduced)"),
        ("{mean:fedavg}", "'fedavg' is no place; write row/column"),
        ("{mean:fedabg/mlp-a100}", "did you mean 'fedavg'"),
        ("{mean:fedavg/mlp-a1000}", "did you mean 'mlp-a100'"),
        ("{mean:table9/fedavg/mlp-a100}", "unknown table 'table9'"),
        ("{maen:fedavg/mlp-a100}", "did you mean 'mean'"),
        ("{mean:fedavg/mlp-a100|digit=1}", "did you mean 'digits'"),
        ("{mean:fedavg/mlp-a100|times=x}", "option times does not take 'x'; write times=0.01"),
        ("{mean:fedavg/mlp-a100|digits=two}", "option digits does not take 'two'; write digits=1"),
        ("{mean:fedavg/mlp-a100|seed=8;a}", "option seed does not take '8;a'; write seed=8 or seed=8;9"),
        ("{mean:fedavg,fedlaw/mlp-a100|as=larges}", "option as does not take 'larges'; write as=range, largest"),
        ("{count:judged|printed_seeds=three}", "option printed_seeds does not take 'three'"),
        ("{status:fedavg,fedlaw/mlp-a100|as=range}", "as=range takes numbers, and status gives words"),
        ("{mean:fedavg/mlp-a100|metric=gama}", "unknown metric 'gama'"),
        ("{setting:fedavg/mlp-a100|key=round}", "did you mean 'rounds'"),
        ("{gain:fedlaw/mlp-a100}", "'fedlaw' is no pair of rows"),
        ("{difference:fedlaw/mlp-a100|metric=test_accuracy;test_loss}", "one metric has a printed number; name one"),
        ("{printed:ours/mlp-a100}", "the paper prints no such number"),
        ("{distance:other}", "unknown reading 'other'"),
        ("{count:reproducd}", "did you mean 'reproduced'"),
        ("{verdict:K2}", "unknown claim 'K2'"),
        ("{claims:open}", "unknown verdict 'open'"),
        ("{holds:mean:fedavg/mlp-a100}", "write a comparison"),
        ("{mean fedavg}", "write {form:place}"),
        ("{mean:fedavg/mlp-a100", "a brace has no partner"),
    ],
)
def test_what_is_refused(text: str, words: str, facts: Facts) -> None:
    """One line names the file, the remark, and what is wrong with it."""
    with pytest.raises(UserError) as refused:
        filled(["Fine.", text], facts, WHERE)
    said = str(refused.value)
    assert said.startswith(f"{WHERE}[1]: ")
    assert words in said
    assert "\n" not in said


def test_a_sentence_waits_for_its_runs(facts: Facts) -> None:
    """Row `ours` has not run, so the sentence is left out. `filled` returns the missing cell and the missing reading."""
    assert filled(["{mean:ours/mlp-a100}", "{distance:not run}", "Fine."], facts, WHERE) == (
        ["Fine."],
        ["Table 3, p. 8: FedAvg + GH, FashionMNIST · MLP, α = 100", "reading 'not run'"],
    )


@pytest.mark.parametrize(
    "text", ["{deviation:fedavg/mlp-a100}", "{gain:fedlaw-fedavg/mlp-a100}", "{gains:fedlaw-fedavg/mlp-a100|as=mean}"]
)
def test_a_sentence_waits_where_one_seed_tells_nothing(text: str) -> None:
    """One row has only seed 9, the other only seed 8, so the sentence on both is left out."""
    plan = make_plan("full")
    found = make_evidence(plan, {("fedavg", A): [89.0, 89.5], ("fedlaw", A): [88.0, 88.5]})
    for one, seed in zip(found.values(), (8, 9), strict=True):
        del one[seed]
    kept, waits = filled([text, "Fine."], Facts({"table3": exhibit(plan, found)}, own="table3"), WHERE)
    assert (kept, len(waits)) == (["Fine."], 1)


def test_where_training_diverged() -> None:
    """The sentence has each seed's last recorded round. It is left out if a seed did not diverge or has not run."""
    plan = make_plan("full", seeds=[8])
    table = exhibit(plan, make_evidence(plan, {("fedavg", A): [None], ("fedlaw", A): [88.0]}))
    rounds = len(table.evidence[table.cell("fedavg", A).run_id][8].curves["round"])
    said = filled(
        [f"{{diverged:{row}/{A}}}" for row in ("fedavg", "fedlaw", "ours")], Facts({"table3": table}, own="table3"), WHERE
    )
    assert said[0] == [str(rounds)]
    assert len(said[1]) == 2


def test_where_training_diverged_at_one_seed() -> None:
    """One of two seeds diverged."""
    plan = make_plan("full", seeds=[8, 9])
    table = exhibit(plan, make_evidence(plan, {("fedavg", A): [88.0, None]}))
    rounds = len(table.evidence[table.cell("fedavg", A).run_id][9].curves["round"])
    texts = [f"{{diverged:fedavg/{A}{ending}}}" for ending in ("|seed=9", "|seed=8", "")]
    said = filled([*texts, f"{{mean:fedavg/{A}|seed=8}}"], Facts({"table3": table}, own="table3"), WHERE)
    assert said[0] == [str(rounds), "88.00"]
    assert len(said[1]) == 2


def test_rounds_to_a_target_are_numbers() -> None:
    """Whole numbers have a range, a largest and an order, as others have. FedAvg reaches 60 in round 2 or 3."""
    plan = make_plan("full")
    for cell in plan["cells"]:
        cell["read"], cell["metric"] = "first_reaching(60)", cell["metric"] | {"unit": "rounds"}
    facts = Facts({"table3": exhibit(plan, make_evidence(plan, ACCURACIES))}, own="table3")
    place = f"seeds:fedavg/{A}"
    texts = [f"{{{place}|as=range}}", f"{{{place}|as=largest, plus=0.5}}", f"Longer {{holds:{place} > 0}}."]
    assert filled(texts, facts, WHERE) == (["2.0 to 3.0", "3.5", "Longer."], [])


def test_a_quoted_word_compares_nothing() -> None:
    """Text in quotation marks is the paper's."""
    prose.check('The paper says "faster convergence rate", and no more.', WHERE)


def test_every_form_is_described() -> None:
    assert all(f" {name} " in f" {fill.__doc__} ".replace("\n", " ") for name in FORMS)


def test_claims_that_have_not_run_are_not_judged() -> None:
    verdicts = Facts({}, claims={"K1": "contradicted", "K2": "not run"})
    assert filled(["{claims:judged}"], verdicts, WHERE) == (["1"], [])


@pytest.mark.parametrize("other", [{}, {"variant_of": "table3"}])
def test_a_number_of_two_tables_counts_once_and_variants_do_not(other: dict) -> None:
    plans = {"table3": make_plan("full"), "other": make_plan("full", **other)}
    tables = {name: exhibit(plan, make_evidence(plan, ACCURACIES)) for name, plan in plans.items()}
    assert filled(["{count:judged}"], Facts(tables), WHERE) == (["4"], [])


@pytest.mark.parametrize("condition", ["mean:fedavg/mlp-a100 < 89.7", "70 < mean:fedavg/mlp-a01 < mean:fedavg/mlp-a100 <= 80"])
def test_every_part_of_a_condition_holds_strictly(condition: str, facts: Facts) -> None:
    with pytest.raises(UserError, match="does not hold"):
        filled([f"So {{holds:{condition}}}."], facts, WHERE)


def test_a_sentence_waits_where_seeds_are_of_different_code() -> None:
    plan = make_plan("full")
    evidence = make_evidence(plan, ACCURACIES)
    for seeds in evidence.values():
        for seed, receipt in seeds.items():
            receipt["code"] = {"part fedlaw": f"{RULE}b" if seed == 10 else f"{RULE}a"}
    sentences, waiting = filled(["{mean:fedlaw/mlp-a100}"], Facts({"table3": exhibit(plan, evidence)}, own="table3"), WHERE)
    assert (sentences, len(waiting)) == ([], 1)


def test_a_reading_with_a_missing_number_has_no_distance() -> None:
    plan = make_plan("full")
    assert _distances(exhibit(plan, make_evidence(plan, {("fedavg", A): [89.0] * 3}))) == {OWN: None}
