from hlorank_training.split import SplitRule, split

FAMILIES = {f"{family}_{i}": family for family in ("a", "b", "c") for i in range(20)}


def test_no_name_is_used_twice_and_none_is_lost():
    parts = split(FAMILIES, SplitRule())
    names = [*parts.train, *parts.validation, *parts.test]
    assert sorted(names) == sorted(FAMILIES)


def test_a_held_out_family_is_only_in_the_test():
    parts = split(FAMILIES, SplitRule(held_out_families=("b",)))
    assert {n for n in FAMILIES if FAMILIES[n] == "b"} <= set(parts.test)
    assert not [n for n in (*parts.train, *parts.validation) if FAMILIES[n] == "b"]


def test_the_split_does_not_depend_on_the_order_of_names():
    backwards = dict(reversed(FAMILIES.items()))
    assert split(backwards, SplitRule()) == split(FAMILIES, SplitRule())
