"""What penstock.torch and penstock.jax have in common: a loop is a pass, and passes are chosen. Without either."""

from __future__ import annotations

import copy
import json
import re
import warnings

import pytest
from conftest import numbers, order_of

import penstock as ps
from penstock._calls import check_options
from penstock._passes import LoaderOptions, PassLoader
from penstock._trainers import Steps


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


def test_a_copy_would_share_its_position():
    with pytest.raises(TypeError, match="a Passes cannot be copied"):
        copy.copy(Passes())


def test_a_loop_that_is_left_is_given_up():
    passes = expected(3)
    loader = Passes()
    for _ in loader:
        break
    assert list(loader) == passes[1] and list(loader) == passes[2]
    first = iter(loader)
    next(first)
    next(iter(loader))
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


def take(loader: Passes, steps: int) -> None:
    loop = iter(loader)
    for _ in range(steps):
        next(loop)
    loader.loop = loop  # so that it is not left


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("steps", range(6))
def test_a_state_saved_in_a_loop_resumes_with_the_rest_of_its_pass(epoch, steps):
    """As a run does that goes on. At the last of the five steps the rest is empty."""
    passes = expected(4)
    loader = Passes()
    for _ in range(epoch):
        list(loader)
    take(loader, steps)
    state = loader.state_dict()
    assert loader.epoch == epoch
    resumed = Passes()
    resumed.load_state_dict(state)
    assert resumed.epoch == epoch
    assert [list(resumed) for _ in range(resumed.epoch, 3)] == [passes[epoch][steps:], *passes[epoch + 1 : 3]]
    # Saved again before the first step, and with the epoch said as trainers do.
    again = Passes()
    again.load_state_dict(state)
    more = Passes()
    more.load_state_dict(again.state_dict())
    more.set_epoch(epoch)
    assert list(more) == passes[epoch][steps:] and list(more) == passes[epoch + 1]
    other = Passes()
    other.load_state_dict(state)
    other.set_epoch(epoch + 1)
    assert list(other) == passes[epoch + 1]


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_state_saved_after_a_loop_resumes_with_the_next_pass(epoch):
    passes = expected(3)
    loader = Passes()
    for _ in range(epoch + 1):
        list(loader)
    resumed = Passes()
    resumed.load_state_dict(loader.state_dict())
    assert loader.epoch == resumed.epoch == epoch + 1
    assert list(resumed) == passes[epoch + 1]


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("steps", [1, 3, 5])
def test_a_state_saved_after_a_break_resumes_with_what_was_left(epoch, steps):
    """torchdata's StatefulDataLoader does the same. After the last step nothing was left."""
    passes = expected(3)
    loader = Passes()
    for _ in range(epoch):
        list(loader)
    for number, _ in enumerate(loader):
        if number + 1 == steps:
            break
    resumed = Passes()
    resumed.load_state_dict(loader.state_dict())
    assert list(resumed) == (passes[epoch][steps:] or passes[epoch + 1])
    # An epoch of so many steps is a choice that is said.
    loader.set_epoch(epoch + 1)
    resumed.load_state_dict(loader.state_dict())
    assert list(resumed) == passes[epoch + 1] == list(loader)


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_state_saved_after_an_exception_resumes_with_what_was_left(epoch):
    passes = expected(2)
    loader = Passes()
    for _ in range(epoch):
        list(loader)
    with pytest.raises(KeyError):
        for number, _ in enumerate(loader):
            if number == 2:
                raise KeyError
    resumed = Passes()
    resumed.load_state_dict(loader.state_dict())
    assert list(resumed) == passes[epoch][3:]


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_batch_that_was_fetched_ahead_counts_as_delivered(epoch):
    passes = expected(2)
    loader = Passes()
    for _ in range(epoch):
        list(loader)
    loop = iter(loader)
    next(loop)
    before = loader.state_dict()
    ahead = next(loop)
    resumed = Passes()
    resumed.load_state_dict(before)
    assert next(iter(resumed)) == ahead == passes[epoch][1]
    resumed.load_state_dict(loader.state_dict())
    assert next(iter(resumed)) == passes[epoch][2]


def test_a_loop_whose_loader_was_moved_says_by_what():
    loader = Passes()
    state = loader.state_dict()
    for move, why in [
        (lambda: loader.load_state_dict(state), r"load_state_dict\(\) has moved this loader"),
        (lambda: loader.set_epoch(2), r"set_epoch\(\) has moved this loader"),
        (lambda: next(iter(loader)), "a newer loop over this loader has begun"),
        (lambda: loader._batch_of_pass(0), "batches were asked for by number"),
    ]:
        loop = iter(loader)
        next(loop)
        move()
        with pytest.raises(RuntimeError, match=why):
            next(loop)
    # Also where a new loop has begun after a state was loaded.
    old = iter(loader)
    next(old)
    loader.load_state_dict(state)
    next(iter(loader))
    with pytest.raises(RuntimeError, match="this loop cannot continue"):
        next(old)


@pytest.mark.parametrize("epoch", [0, 1])
def test_an_iterator_that_has_not_begun_follows(epoch):
    """Lightning makes it before it says the epoch, other programs before they load a state."""
    passes = expected(3)
    saved = Passes()
    for _ in range(epoch):
        list(saved)
    take(saved, 2)
    loader = Passes()
    loop = iter(loader)
    loader.load_state_dict(saved.state_dict())
    loader.set_epoch(epoch)
    assert list(loop) == passes[epoch][2:]
    loop = iter(loader)
    loader.set_epoch(2)
    assert list(loop) == passes[2]
    # At the last step of an epoch Lightning says the next one.
    last = Passes()
    last.set_epoch(epoch)
    take(last, 5)
    loader = Passes()
    loader.load_state_dict(last.state_dict())
    loop = iter(loader)
    loader.set_epoch(epoch + 1)
    assert list(loop) == passes[epoch + 1]


def steps_of(loader: Passes, first: int = 0) -> list[list[int]]:
    """What Accelerate's skip_first_batches makes of a loader."""
    return [loader.dataset.__getitems__(steps) for steps in Steps(loader) if steps[0] >= first]


@pytest.mark.parametrize("epoch", [0, 1])
def test_skipped_batches_are_those_of_the_pass_that_was_said(epoch):
    passes = expected(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = Passes()
        said.set_epoch(epoch)
        assert steps_of(said, 2) == passes[epoch][2:] and list(said) == passes[epoch + 1]
        saved = Passes()
        for _ in range(epoch):
            list(saved)
        take(saved, 2)
        loaded = Passes()
        loaded.load_state_dict(saved.state_dict())
        assert steps_of(loaded, 2) == passes[epoch][2:] and list(loaded) == passes[epoch + 1]


def test_batches_skipped_in_a_pass_that_was_not_said_are_warned_of():
    with pytest.warns(UserWarning, match=r"number 2 of pass 0, as by skip_first_batches\(2\).*loader.set_epoch\(epoch\)"):
        assert steps_of(Passes(), 2) == expected(1)[0][2:]


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_state_saved_at_the_last_of_the_steps_asked_for_resumes_with_nothing(epoch):
    passes = expected(3)
    loader = Passes()
    loader.set_epoch(epoch)
    for steps in Steps(loader):
        loader.dataset.__getitems__(steps)
        state = loader.state_dict()
    for saved, left in [(state, []), (loader.state_dict(), passes[epoch + 1])]:
        resumed = Passes()
        resumed.load_state_dict(saved)
        assert list(resumed) == left and resumed.epoch == epoch + 1 + bool(left)


@pytest.mark.parametrize("epoch", [0, 1])
def test_steps_asked_for_after_the_last_of_a_pass_are_none(epoch):
    passes = expected(3)
    saved = Passes()
    saved.set_epoch(epoch)
    take(saved, 5)
    state = saved.state_dict()
    for say in (lambda loader: None, lambda loader: loader.set_epoch(epoch)):
        loader = Passes()
        loader.load_state_dict(state)
        say(loader)
        assert steps_of(loader) == [] and loader.epoch == epoch + 1 and steps_of(loader) == passes[epoch + 1]
    loader = Passes()
    loader.load_state_dict(json.dumps(state))
    loader.set_epoch(epoch + 1)
    assert steps_of(loader) == passes[epoch + 1]


def test_a_loop_over_steps_that_is_closed_late_disturbs_no_other():
    loader = Passes()
    late = iter(Steps(loader))
    next(late)
    for steps in Steps(loader):
        loader.dataset.__getitems__(steps)
        if steps == [2]:
            late.close()
    state = None
    for steps in Steps(loader):
        loader.dataset.__getitems__(steps)
        if steps == [2]:
            late.close()
        state = loader.state_dict()
    assert state["in_last_step_of_pass"]


def test_a_state_of_a_last_step_leaves_an_endless_plan_its_batches():
    class Endless(Passes):
        def __init__(self) -> None:
            PassLoader.__init__(self, numbers(22).seed(3).shuffle().batch(5).repeat(), "host:1", 3, "scatter", None, {})

    saved = Passes()
    take(saved, 5)
    loader = Endless()
    loader.load_state_dict(saved.state_dict())
    assert next(iter(loader)) == expected(2)[1][0]


def test_another_plan_goes_on_at_an_epochs_beginning_in_the_same_order():
    """As for images that grow from epoch to epoch."""

    class Images(PassLoader):
        def __init__(self, size: int) -> None:
            decode = ps.decode_image(crop=ps.random_resized_crop(size), flip=0.5, geometry="geometry")
            plan = ps.synthetic_images(12).seed(3).shuffle().map(decode).batch(5)
            super().__init__(plan, "host:1", 2, "scatter", None, {})

        def _convert(self, step: ps.Step):
            return [sample.number for sample in step.samples], step["geometry"].numpy().copy(), step["image"].shape[1]

    small, large = list(zip(range(9), iter_passes(Images(16), 3))), Images(32)
    large.set_epoch(2)
    for (_, (numbers_before, geometry, side)), (numbers_now, now, larger) in zip(small[6:], large):
        assert (side, larger) == (16, 32) and numbers_before == numbers_now
        assert (geometry[:, :6] == now[:, :6]).all()  # the same regions of the images


def iter_passes(loader, passes: int):
    for _ in range(passes):
        yield from loader


def test_a_state_of_a_pass_goes_to_any_loader():
    loader = Passes()
    take(loader, 5)
    plain = numbers(22).seed(3).shuffle().batch(5).repeat().prefetch_to_devices("host:1", depth=3).loader()
    plain.load_state_dict(loader.state_dict())
    assert order_of([next(plain)]) == expected(2)[1][0]
    assert "in_last_step_of_pass" not in plain.state_dict()


def test_an_endless_repeat_in_the_plan_is_named():
    class Repeated(Passes):
        def __init__(self) -> None:
            PassLoader.__init__(self, numbers(22).batch(5).repeat().take(3), "host:1", 2, "scatter", None, {})

    with pytest.raises(ValueError, match=r"DataLoader repeats its plan, pass by pass.*leave out its repeat\(\)"):
        Repeated()


def test_faults_and_the_report_are_those_of_the_loader():
    loader = Passes()
    list(loader)
    assert loader.faults() == [] and "delivered     22 samples" in str(loader.report())


def test_options_of_other_loaders_are_answered():
    def DataLoader(dataset, *, depth=2, **options):
        check_options(DataLoader, options, list(LoaderOptions.__annotations__), {"shuffle": "it is .shuffle() of the plan"})

    DataLoader(None, threads=2, on_fault="mask")
    for word, answer in [("shuffle", "it is .shuffle() of the plan"), ("dept", "did you mean 'depth'?"), ("on_falt", "did you mean 'on_fault'?")]:
        with pytest.raises(TypeError, match=re.escape(f"DataLoader() has no option '{word}': {answer}")):
            DataLoader(None, **{word: 1})


class Failing(Passes):
    def _convert(self, step: ps.Step) -> list[int]:
        if step.number == 2:
            raise ValueError("a batch that cannot be collated")
        return super()._convert(step)


def test_a_loop_that_failed_fails_again():
    """It does not end as if the rest of the pass had been delivered."""
    steps = iter(Failing())
    assert [next(steps), next(steps)] == expected(1)[0][:2]
    for _ in range(3):
        with pytest.raises(ValueError, match="cannot be collated"):
            next(steps)
