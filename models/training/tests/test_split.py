from hlorank_training.data.split import SplitRule, split

FAMILIES = {f"{family}_{i}": family for family in ("a", "b", "c") for i in range(20)}


def test_no_name_is_used_twice_and_none_is_lost():
    parts = split(FAMILIES, SplitRule())
    names = [*parts.train, *parts.validation, *parts.test]
    assert sorted(names) == sorted(FAMILIES)


def test_an_unseen_family_is_only_in_the_test():
    parts = split(FAMILIES, SplitRule(unseen_families=1))
    apart = {FAMILIES[name] for name in parts.unseen_family}
    assert len(apart) == 1 and len(parts.unseen_family) == 20
    assert set(parts.unseen_family) <= set(parts.test)
    assert not apart & {FAMILIES[name] for name in (*parts.train, *parts.validation)}
    assert len(parts.test) == 20 + 8


def test_the_split_does_not_depend_on_the_order_of_names():
    backwards = dict(reversed(FAMILIES.items()))
    assert split(backwards, SplitRule()) == split(FAMILIES, SplitRule())
