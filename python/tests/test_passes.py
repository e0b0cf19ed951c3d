"""What penstock.torch and penstock.jax have in common: a loop is a pass, and passes are chosen. Without either."""

from __future__ import annotations

import pytest
from conftest import numbers, order_of

import penstock as ps
from penstock._passes import PassLoader


class Passes(PassLoader[list[int]]):
    def __init__(self, **options) -> None:
        super().__init__(numbers(22).seed(3).shuffle().batch(5), "host:1", 3, "scatter", None, options)

    def _convert(self, step: ps.Step) -> list[int]:
        return order_of([step])


def expected(passes: int) -> list[list[list[int]]]:
    loader = Passes()
    return [list(loader) for _ in range(passes)]


def test_each_loop_is_a_pass_in_an_order_of_its_own():
    passes = expected(3)
    assert all(len(one) == 5 and sorted(sum(one, [])) == list(range(22)) for one in passes)
    assert passes[0] != passes[1]


def test_a_loop_that_is_left_is_given_up():
    passes = expected(3)
    loader = Passes()
    for _ in loader:
        break
    assert list(loader) == passes[1] and list(loader) == passes[2]
    first = iter(loader)
    next(first)
    iter(loader)
    with pytest.raises(RuntimeError, match="newer loop"):
        next(first)


@pytest.mark.parametrize("digest", [False, True])
def test_set_epoch_chooses_the_pass(digest):
    passes = expected(3)
    loader = Passes(digest=digest)
    for epoch in (2, 0, 1):
        loader.set_epoch(epoch)
        assert list(loader) == passes[epoch] and loader.epoch == epoch + 1


def test_steps_are_asked_for_by_number():
    passes = expected(1)
    loader = Passes()
    assert [loader._batch_of_pass(number) for number in (3, 0, 4, 1)] == [passes[0][number] for number in (3, 0, 4, 1)]


def test_a_chosen_pass_is_saved_and_resumed():
    passes = expected(3)
    loader = Passes()
    loader.set_epoch(2)
    loop = iter(loader)
    assert [next(loop), next(loop)] == passes[2][:2]
    resumed = Passes()
    resumed.load_state_dict(loader.state_dict())
    assert list(resumed) == passes[2][2:]
