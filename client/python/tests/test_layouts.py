import numpy as np
import pytest
from measured import form_of

from hlorank import ConfigurationError, Layouts


def drawn(*shape):
    return np.random.default_rng(7).integers(-1, 6, shape).astype(np.int8)


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.float32, np.float64])
def test_values_come_back_whatever_type_they_had(kind):
    values = drawn(20, 5, 3, 6)
    assert (Layouts(values.astype(kind)).values() == values).all()


def test_tpu_graphs_shape_is_the_same():
    values = drawn(20, 5, 3, 6)
    assert (Layouts(values.reshape(20, 5, 18)).values() == values).all()


def test_a_few_changes_travel_as_changes():
    values = np.repeat(drawn(1, 40, 3, 6), 10, axis=0)
    values[4, 17] = (values[4, 17] + 2) % 7 - 1
    form, message = form_of(Layouts(values))
    assert form == "delta_layout_configs"
    assert list(message.change_counts) == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert list(message.change_slots) == [17]
    assert list(message.change_entries) == [1]


def test_every_entry_is_told_apart():
    values = np.repeat(drawn(1, 1, 1, 18), 19, axis=0).reshape(19, 1, 18)
    values[range(1, 19), 0, range(18)] = (values[0, 0] + 2) % 7 - 1
    layouts = Layouts(values)
    assert len(form_of(layouts)[1].tables[0].entries) == 3 * 19
    assert (layouts.values().reshape(19, 1, 18) == values).all()


@pytest.mark.parametrize("found", [-2, 6, 300])
def test_a_value_outside_is_named(found):
    values = drawn(4, 8, 18).astype(int)
    values[3, 7, 5] = found
    with pytest.raises(ConfigurationError, match=rf"configuration 3, slot 7 is {found}, outside"):
        Layouts(values)


@pytest.mark.parametrize("found", [0.5, np.nan, np.inf])
def test_a_number_that_is_not_whole_is_named(found):
    values = drawn(4, 8, 18).astype(np.float32)
    values[3, 7, 5] = found
    with pytest.raises(ConfigurationError, match=r"layouts\[3, 7, 5\] is .*, not a whole number"):
        Layouts(values)


@pytest.mark.parametrize("shape", [(4, 8), (4, 8, 17), (4, 18), (4, 8, 6, 3), (4, 8, 3, 6, 1)])
def test_another_shape_is_refused(shape):
    with pytest.raises(ConfigurationError, match="layouts have shape"):
        Layouts(np.zeros(shape, int))


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ConfigurationError, match="layouts is not an array"):
        Layouts([[[0] * 18], [[0] * 17]])


def test_no_configurations_are_refused():
    with pytest.raises(ConfigurationError, match="no configurations"):
        Layouts(np.zeros((0, 8, 18), int))


def test_more_entries_than_an_index_numbers_are_refused():
    count = (1 << 16) + 1
    digits = np.arange(count)[:, None] // 7 ** np.arange(18) % 7
    with pytest.raises(ConfigurationError, match="slot 0 has 65537 distinct entries"):
        Layouts(digits.reshape(count, 1, 18) - 1)
