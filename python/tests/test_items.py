"""Data sets of any object with __len__ and __getitem__, on threads and in worker processes."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time

import items
import numpy as np
import pytest
from conftest import order_of, run_python, state_of
from time_limit import seconds_left, wait_until

import penstock as ps

WORKERS = pytest.mark.parametrize("workers", [0, 2])


def labels(dataset: ps.Dataset, batch: int = 10, **options) -> list[int]:
    loader = dataset.batch(batch).loader(**options)
    return [number for step in loader for number in step["label"].copy().tolist()]


@WORKERS
def test_every_item_comes_once_in_the_plans_order(workers):
    dataset = ps.Dataset(items.Points(100), workers=workers)
    assert len(dataset) == 100
    assert [str(field) for field in dataset.fields] == ["x f32 [4]", "label i64 []"]
    assert repr(dataset) == "Points(100 items, x f32 [4], label i64 [])"
    loader = dataset.shuffle(seed=3).repeat(2).batch(8).loader()
    seen = []
    for step in loader:
        assert (step["x"].numpy() == step["label"].numpy()[:, None]).all()
        seen += step["label"].copy().tolist()
    same_order = order_of(ps.memory({"x": np.zeros(100)}).shuffle(seed=3).repeat(2).batch(8).loader())
    assert seen == same_order and sorted(seen[:100]) == list(range(100))


@WORKERS
def test_items_may_be_tuples_dicts_and_single_values(workers):
    dataset = ps.Dataset(items.Tuples(10), names=("a", "b", "c"), workers=workers)
    assert [str(field) for field in dataset.fields] == ["a i64 [2,3]", "b f64 []", "c bool []"]
    step = next(dataset.batch(10).loader())
    assert step["a"].numpy()[9].tolist() == [[9] * 3] * 2
    assert step["b"].numpy().tolist() == list(range(10)) and step["c"].numpy().tolist() == [1, 0] * 5
    named = ps.Dataset(items.Named(10), workers=workers)
    assert [str(field) for field in named.fields] == ["x f64 []", "label i64 []"]
    assert labels(named) == list(range(10))
    single = ps.Dataset([3, 4, 5], workers=workers)
    assert [str(field) for field in single.fields] == ["item i64 []"]
    assert next(single.batch(3).loader())["item"].numpy().tolist() == [3, 4, 5]


@WORKERS
def test_sizes_that_differ_are_found_and_may_be_mapped_to_one(workers):
    dataset = ps.Dataset(items.Ragged(50), workers=workers)
    assert [str(field) for field in dataset.fields] == ["bytes u8 [?]", "tokens i64 [?]", "text u8 [?]"]

    @ps.map_function(outputs={"sizes": ("i64", (3,)), "last": ("i64", ())})
    def measure(bytes, tokens, text):
        return np.array([len(bytes), len(tokens), len(text.tobytes().decode())]), tokens[-1] if len(tokens) else -1

    step = next(dataset.map(measure).batch(50).loader())
    assert step["sizes"].numpy().tolist() == [[n, n % 7, n % 3] for n in range(50)]
    assert step["last"].numpy().tolist() == [n % 7 - 1 for n in range(50)]
    with pytest.raises(ValueError, match="differ in size"):
        dataset.batch(2).loader()


@WORKERS
def test_encoded_images_are_decoded_by_the_loaders_threads(workers):
    images = next(ps.synthetic_images(1).map(ps.decode_image(crop=ps.resize_to(64))).batch(1).loader())["image"].copy()
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    import io

    file = io.BytesIO()
    pillow.fromarray(images[0]).save(file, "png")
    records = [{"image": file.getvalue(), "label": n} for n in range(6)]
    step = next(ps.Dataset(records, workers=workers).map(ps.decode_image(crop=ps.resize_to(64))).batch(6).loader())
    assert (step["image"].numpy() == images).all() and step["label"].numpy().tolist() == list(range(6))
    decoded = ps.Dataset([pillow.fromarray(images[0])] * 2, names=["image"], workers=workers)
    assert [str(field) for field in decoded.fields] == ["image u8 [?,?,3]"]


def test_several_items_are_asked_for_in_one_call_where_there_is_one():
    several = items.Several(4000)
    assert labels(ps.Dataset(several), threads=2) == list(range(4000))
    assert max(several.calls) > 1 and sum(several.calls) > 2000


@pytest.mark.parametrize("kind", [tuple, dict, list])
def test_a_whole_batch_is_not_taken_for_its_items(kind):
    loader = ps.Dataset(items.Collated(300, kind), names=["a", "b"]).batch(20).loader(threads=2)
    rows = [row for step in loader for row in zip(step["a"].copy().tolist(), step["b"].copy().tolist())]
    assert rows == [(2 * number, 2 * number + 1) for number in range(300)]


ARRIVED: list[Watched] = []


class Watched:
    """How many threads were in data[i] at once."""

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)
        ARRIVED.append(self)

    def __init__(self) -> None:
        self.inside = self.most = 0

    def __len__(self):
        return 100

    def __getitem__(self, number):
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.001)  # gives up the GIL, as reading a file does
        self.inside -= 1
        return number


class WatchedTogether(Watched):
    def __getitems__(self, numbers):
        return [self[number] for number in numbers]


@pytest.mark.parametrize("kind", [Watched, WatchedTogether])
def test_one_thread_at_a_time_calls_a_data_set(kind):
    """It may keep an open file, which seeks and reads, or a shard, as data sets written for torch's DataLoader do."""
    data = kind()
    assert labels(ps.Dataset(data, names=["label"]).repeat(3), 7, threads=4) == list(range(100)) * 3
    assert data.most == 1


@pytest.mark.parametrize("travels", [False, True])
def test_several_threads_call_a_data_set_that_is_said_to_be_written_for_it(travels):
    data = Watched()
    plan = ps.Dataset(data, names=["label"], concurrent=True).repeat().batch(7)
    if travels:
        plan = pickle.loads(pickle.dumps(plan))
        data = ARRIVED.pop()
    loader = plan.loader(threads=4)
    while data.most < 2:
        next(loader)


def test_a_child_of_a_fork_reads_a_data_set_that_its_parent_was_reading():
    """Not this test's process: it has threads of others."""
    code = """
        import os, threading, warnings
        import penstock as ps

        warnings.simplefilter("ignore")
        inside, leave = threading.Event(), threading.Event()

        class Data:
            def __len__(self):
                return 8

            def __getitem__(self, number):
                if os.getpid() == parent:
                    inside.set()
                    leave.wait()
                return number

        parent = os.getpid()
        plan = ps.Dataset(Data(), fields={"x": ("i64", ())}).batch(4)
        loader = plan.loader()
        steps = []
        reader = threading.Thread(target=lambda: steps.extend(step["x"].copy().tolist() for step in loader))
        reader.start()
        inside.wait()
        child = os.fork()
        if child == 0:
            found = [step["x"].numpy().tolist() for step in plan.loader()]
            os._exit(0 if found == [[0, 1, 2, 3], [4, 5, 6, 7]] else 1)
        status = os.waitpid(child, 0)[1]
        leave.set()
        reader.join()
        assert steps == [[0, 1, 2, 3], [4, 5, 6, 7]]
        print("child", status)
    """
    assert run_python(textwrap.dedent(code)).stdout.strip() == "child 0"


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)", "del loader"])
def test_a_program_ends_while_a_loader_of_slow_items_lives(end):
    code = f"""
        import time
        import penstock as ps

        class Data:
            def __len__(self):
                return 200

            def __getitem__(self, number):
                time.sleep(0.003)
                return number

        loader = ps.Dataset(Data(), fields={{"x": ("i64", ())}}).repeat().batch(4).loader(threads=3)
        next(loader)
        print("done", flush=True)
        {end}
    """
    assert run_python(textwrap.dedent(code)).stdout.strip() == "done"


def test_parts_of_one_data_set_are_called_by_one_thread_at_a_time():
    """Training and validation are two Subsets of one data set, which may keep an open file."""

    class Part:
        def __init__(self, dataset, numbers):
            self.dataset, self.numbers = dataset, numbers

        def __len__(self):
            return len(self.numbers)

        def __getitem__(self, number):
            return self.dataset[self.numbers[number]]

    data = Watched()
    train = ps.Dataset(Part(data, range(50)), names=["label"])
    rest = ps.Dataset(Part(Part(data, range(50, 100)), range(50)), names=["label"])
    assert sorted(labels(ps.concatenate([train, rest]).repeat(3), 7, threads=4)) == sorted(list(range(100)) * 3)
    assert data.most == 1


@ps.map_function(outputs={"y": ("i64", ())})
def doubled(label):
    return label * 2


def test_a_transform_made_by_the_decorator_travels(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6))
    data = ps.arrays({"label": tmp_path / "x.npy"})
    plan = data.map(doubled).batch(3)
    for again in (pickle.loads(pickle.dumps(plan)), ps.Dataset.from_json(plan.to_json(allow_pickle=True), allow_pickle=True)):
        assert [step["y"].numpy().tolist() for step in again.loader()] == [[0, 2, 4], [6, 8, 10]]

    @ps.map_function(outputs={"y": ("i64", ())})
    def inside(label):
        return label

    with pytest.raises(Exception, match="made inside a function"):
        pickle.dumps(data.map(inside))


def test_tables_are_no_rows():
    class Table:
        columns = ["x", "y"]

        def to_pylist(self):
            return []

        def __len__(self):
            return 2

        def __getitem__(self, number):
            return [1, 2]

    with pytest.raises(TypeError, match="its columns"):
        ps.Dataset(Table())
    with pytest.raises(ValueError, match="some values are masked"):
        ps.memory({"x": np.ma.masked_array([1.0, -999.0], [0, 1])})
    assert len(ps.memory({"x": np.ma.masked_array([1.0, 2.0], [0, 0])})) == 2


@pytest.mark.parametrize("dtype", ["f64", "f32", "i64"])  # as it lies in memory, rounded, refused by its values otherwise
def test_masked_values_are_no_numbers(dtype: str):
    value = np.ma.masked_array([1.0, -999.0], [0, 1])
    with pytest.raises(ps.DataError, match="field 'x': some values are masked"):
        next(iter(ps.Dataset([{"x": value}], fields={"x": (dtype, (2,))}).batch(1).loader()))
    whole = np.ma.masked_array([1.0, 2.0], [0, 0])
    assert next(iter(ps.Dataset([{"x": whole}]).batch(1).loader()))["x"].numpy().tolist() == [[1, 2]]
    mapped = ps.memory({"x": np.zeros((1, 2))}).map(lambda x: {"x": value}, outputs={"x": (dtype, (2,))}, name="masks")
    with pytest.raises(ps.DataError, match="field 'x': some values are masked"):
        next(iter(mapped.batch(1).loader()))


def test_no_thread_waits_for_a_module_of_numpy() -> None:
    """numpy.ma is imported when it is asked for first: a thread that did that, and gave up the GIL, would hold up the others."""
    program = (
        "import penstock as ps, numpy as np\n"
        "plan = ps.Dataset(list(range(400))).map(lambda item: {'x': np.full(3, item)}, inputs=['item'], outputs={'x': ('i64', (3,))}, name='f')\n"
        "print(sum(len(step.samples) for step in plan.batch(8).loader(threads=8)))\n"
    )
    assert run_python(program).stdout.strip() == "400"


def test_what_a_thread_keeps_stays_until_it_ends():
    made = []

    class Opened(items.Points):
        kept = threading.local()

        def __getitem__(self, number: int):
            if not hasattr(self.kept, "file"):
                self.kept.file = object()
                made.append(threading.get_ident())
            return super().__getitem__(number)

    data = Opened(3000)
    assert labels(ps.Dataset(data), threads=3) == list(range(3000))
    assert len(made) <= 4  # the loader's threads, and this one


@WORKERS
def test_a_bad_item_is_a_fault_of_its_own(workers):
    dataset = ps.Dataset(items.Bad(30), workers=workers)
    with pytest.raises(ps.DataError, match=r"sample 7 .*Bad\[7\]: KeyError: 'seven is bad'") as raised:
        labels(dataset)
    assert isinstance(raised.value.__cause__, KeyError)
    if workers:
        assert "in __getitem__" in str(raised.value.__cause__.__cause__)  # the traceback of the other process
    loader = dataset.batch(10).loader(on_fault="mask")
    rows = [(step["label"].copy(), step["valid"].copy()) for step in loader]
    assert rows[0][0].tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 8, 9] and rows[0][1].sum() == 9
    assert rows[1][0].tolist() == list(range(10, 20)) and len(loader.faults()) == 1


@WORKERS
@pytest.mark.parametrize("policy", ["raise", "replace", "mask"])
def test_an_item_without_memory_is_no_bad_item(workers, policy):
    loader = ps.Dataset(items.Hungry(30), workers=workers).batch(10).loader(on_fault=policy)
    with pytest.raises(ps.DataError, match="no room for seven.*more memory") as raised:
        next(loader)
    assert raised.value.fault.out_of_memory


@WORKERS
def test_an_item_unlike_the_first_says_what_differs(workers):
    fields = {"x": ("f32", (4,)), "label": ("i64", ())}
    loader = ps.Dataset(items.Changing(12), fields=fields, workers=workers).batch(12).loader(on_fault="mask")
    _ = [step["label"].copy() for step in loader]
    reasons = [fault.reason for fault in loader.faults()]
    assert "its 'x' is f32 [5], expected f32 [4]" in reasons[0] and "fields={'x': ('f32', ...)}" in reasons[0]
    assert "'label': expected i64 [], found str" in reasons[1]
    assert "it has no 'label'" in reasons[2]


def test_what_is_random_in_a_worker_resumes():
    def plan(workers: int) -> ps.Dataset:
        return ps.Dataset(items.Noisy(60), workers=workers).seed(3).shuffle().batch(4)

    def values(loader: ps.Loader) -> list[bytes]:
        return [step["x"].numpy().tobytes() for step in loader]

    whole = values(plan(3).loader())
    assert len(set(whole)) == len(whole)
    loader = plan(2).loader()
    begin = [next(loader)["x"].numpy().tobytes() for _ in range(6)]
    other = plan(1).loader(threads=1)
    other.load_state_dict(loader.state_dict())
    assert begin + values(other) == whole
    # Each epoch and each draw has numbers of its own.
    again = values(ps.Dataset(items.Noisy(60), workers=1).seed(3).shuffle().repeat(2).batch(4).loader())
    assert again[:15] == whole and len(set(again)) == 30
    drawn = values(ps.Dataset(items.Noisy(60), workers=1).seed(3).select([5, 5]).batch(1).loader())
    assert drawn[0] != drawn[1]


def test_workers_are_other_processes_and_go_with_the_loader():
    dataset = ps.Dataset(items.Noisy(64), workers=2)
    loader = dataset.batch(4).loader()
    pids = {pid for step in loader for pid in step["pid"].copy().tolist()}
    assert os.getpid() not in pids and 1 <= len(pids) <= 2
    del loader, dataset
    gc.collect()
    wait_until(lambda: all(state_of(pid) == "Z" for pid in pids), "the workers have ended")


def test_a_worker_that_dies_is_replaced(tmp_path):
    assert labels(ps.Dataset(items.Deadly(40, str(tmp_path / "flag")), workers=2)) == list(range(40))


def test_an_item_that_ends_its_worker_twice_is_a_fault_and_moves_no_other():
    loader = ps.Dataset(items.Deadly(40), workers=2).batch(10).loader(on_fault="mask")
    rows = [step["label"].copy().tolist() for step in loader]
    assert rows == [[0, 1, 2, 3, 4, 5, 6, 0, 8, 9], *[list(range(at, at + 10)) for at in (10, 20, 30)]]
    assert [fault.sample.number for fault in loader.faults()] == [7]
    assert "has ended the worker process twice" in loader.faults()[0].reason


@pytest.mark.parametrize(("reads", "ended"), [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)])
def test_a_loader_that_was_stopped_at_an_item_that_kills_goes_on_with_the_next(tmp_path, reads, ended):
    """The worker that read it alone is not lost. It is stopped when so many workers have begun to read the item, and so many of these may end."""
    log = tmp_path / "log"
    log.touch()
    gates = [tmp_path / f"log.{read}" for read in (1, 2)]
    dataset = ps.Dataset(items.Deadly(20, log=str(log)), workers=1)
    loader = dataset.skip(6).batch(2).loader()
    for gate in gates[:ended]:
        gate.touch()
    loader.start()
    wait_until(lambda: log.stat().st_size >= reads, f"{reads} workers have begun to read item 7")
    loader.stop()
    for gate in gates:
        gate.touch()
    assert labels(dataset.skip(8)) == list(range(8, 20))


def test_a_data_set_that_cannot_be_made_again_says_so_and_nothing_waits():
    fields = {"x": ("f32", (4,)), "label": ("i64", ())}
    with pytest.raises(ps.DataError, match="cannot be made again in a worker process: OSError"):
        labels(ps.Dataset(items.Large(), fields=fields, workers=1))


@WORKERS
def test_what_an_exception_quotes_need_not_be_text(workers):
    loader = ps.Dataset(items.Undecodable(12), workers=workers).batch(12).loader(on_fault="mask")
    assert next(loader)["valid"].numpy().sum() == 11
    assert "cannot read a\\udcff" in loader.faults()[0].reason


def test_what_a_lazy_item_raises_is_the_cause():
    with pytest.raises(ps.DataError, match="this one is damaged") as raised:
        labels(ps.Dataset(items.Lazy(6)))
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_forked_child_does_not_share_the_workers():
    dataset = ps.Dataset(items.Points(8), workers=1)
    assert labels(dataset) == list(range(8))
    pid = os.fork()
    if pid == 0:
        try:
            labels(dataset)
        except ps.DataError as error:
            os._exit(0 if "was forked" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    assert labels(dataset) == list(range(8))


def test_no_worker_is_started_at_the_end_of_the_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "import items, penstock as ps\n"
        f"open({str(tmp_path / 'starts')!r}, 'a').write('x')\n"
        "if __name__ == '__main__':\n"
        "    loader = ps.Dataset(items.Points(100_000), workers=2).batch(8).loader()\n"
        "    next(loader)\n"
    )
    result = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=seconds_left())
    assert result.returncode == 0 and result.stderr == ""
    # The program and at most two workers, of which one may still have been at its start.
    assert (tmp_path / "starts").read_text() in ("xx", "xxx")


def test_stopping_does_not_wait_for_a_slow_item(tmp_path):
    fields = {"x": ("f32", (4,)), "label": ("i64", ())}
    begun = tmp_path / "begun"
    begun.touch()
    loader = ps.Dataset(items.Endless(str(begun)), fields=fields, workers=2).batch(1).loader(threads=2)
    loader.start()
    wait_until(lambda: begun.stat().st_size == 2, "both workers are at an item")
    loader.stop()  # no item ever ends


def test_a_loader_can_be_rewound_in_the_middle_and_keeps_its_workers():
    loader = ps.Dataset(items.Noisy(200), workers=2).seed(1).batch(4).loader()
    first = [step["x"].copy() for step in loader]
    pids = set()
    for _ in range(5):
        loader.rewind()
        for _ in range(3):
            pids.update(next(loader)["pid"].copy().tolist())
    loader.rewind()
    assert all((a == b["x"].numpy()).all() for a, b in zip(first, loader))
    assert len(pids) <= 2


@WORKERS
def test_plans_of_items_travel_by_pickle(workers):
    plan = ps.Dataset(items.Points(50), workers=workers).shuffle(seed=3).batch(5)
    for other in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan), ps.Dataset.from_json(plan.to_json(allow_pickle=True), allow_pickle=True)):
        assert repr(other) == repr(plan) and order_of(other.loader()) == order_of(plan.loader())
    with pytest.raises(ps.Error, match="the Python data set Points travels by pickle only"):
        plan.to_json()
    with pytest.raises(ps.Error, match="allow_pickle=True if you trust"):
        ps.Dataset.from_json(plan.to_json(allow_pickle=True))


def test_a_state_is_of_this_data():
    state = ps.Dataset(items.Points(50)).batch(5).loader().state_dict()
    for other in (items.Points(51), items.Named(50)):
        with pytest.raises(ps.Error, match="Points\\(50 items"):
            ps.Dataset(other).batch(5).loader().load_state_dict(state)


def test_what_cannot_be_a_data_set_says_what_can():
    with pytest.raises(TypeError, match=r"memory\(\{'x': array\}\) takes columns"):
        ps.Dataset({"x": np.zeros(3)})
    with pytest.raises(TypeError, match="generator can only be iterated"):
        ps.Dataset(number for number in range(3))
    with pytest.raises(TypeError, match="__len__ and __getitem__"):
        ps.Dataset(7)
    with pytest.raises(ValueError, match=r"tuples of 2: name their parts, names=\('image', 'label'\)"):
        ps.Dataset([(1, 2)])
    with pytest.raises(ValueError, match="3 names for tuples of 2"):
        ps.Dataset([(1, 2)], names=("a", "b", "c"))
    with pytest.raises(ValueError, match="'item' is None in item 0"):
        ps.Dataset([None])
    with pytest.raises(ValueError, match="'item' of item 0, a object, makes no array"):
        ps.Dataset([object()])
    with pytest.raises(ValueError, match="'item' is i64 with 0 axes in item 0, and i64 with 1 in item 1: make them one type"):
        ps.Dataset([3, [3]])
    with pytest.raises(ValueError, match="is empty: give fields"):
        ps.Dataset([])
    with pytest.raises(ValueError, match="workers is a number of processes, found -1"):
        ps.Dataset([1], workers=-1)
    with pytest.raises(ValueError, match="are for an object with items"):
        ps.Dataset(ps.Queue({"x": ("f32", ())}), workers=2)


def test_a_data_set_that_cannot_go_to_a_worker_says_so():
    with pytest.raises(ps.DataError, match="cannot be sent to worker processes.*or leave out workers"):
        labels(ps.Dataset(items.Unpicklable(), workers=1))
    assert labels(ps.Dataset(items.Unpicklable())) == list(range(100))


def test_values_of_other_types_are_taken_where_no_number_changes():
    records = [{"x": [1, 2], "y": np.float64(0.5), "z": 3} for _ in range(4)]
    fields = {"x": ("f32", (2,)), "y": ("f32", ()), "z": ("i32", ())}
    step = next(ps.Dataset(records, fields=fields).batch(4).loader())
    assert step["x"].numpy().tolist() == [[1, 2]] * 4 and step["y"].numpy().tolist() == [0.5] * 4
    assert step["z"].numpy().dtype == np.int32
    for wrong in (1.5, [1.5], [1, None]):
        with pytest.raises(ps.DataError, match=r"field 'z': expected i32 \[.*\], found"):
            shape = () if wrong == 1.5 else (None,)
            next(ps.Dataset([{"z": wrong}], fields={"z": ("i32", shape)}).map(_same, outputs={"z": ("i32", (1,))}).batch(1).loader())
    with pytest.raises(ps.DataError, match="i32 cannot hold some of its values"):
        next(ps.Dataset([{"z": np.int64(1 << 40)}], fields={"z": ("i32", ())}).batch(1).loader())


@pytest.mark.parametrize(
    ("field", "fits", "wrong"),
    [
        ("f32", [0.1, 1 << 24, -(1 << 24), np.float64(1e-60), np.inf, 3.0], [(1 << 24) + 1, 1e39, -1e39, np.float64(1e39), 1 << 2000]),
        ("f16", [2048, 0.1, 65504, np.float32(0.1)], [2049, 70000, 70000.0, np.float32(1e6)]),
        ("bf16", [256, 0.1, 1e38], [257, 1e39]),
        ("f64", [1 << 53, 1 << 63, np.uint64(1 << 63), np.int64(-(1 << 63))], [(1 << 53) + 1, np.int64((1 << 53) + 1), np.uint64((1 << 64) - 1)]),
        ("u8", [255, np.int64(255), np.uint64(7), np.bool_(True)], [256, -1, np.int64(256), np.int8(-1)]),
        ("i64", [np.uint64(5), np.uint8(3)], [np.uint64(1 << 63), 2.0, np.float32(2)]),
        ("u64", [np.int64(5), (1 << 64) - 1], [np.int64(-1)]),
    ],
)
def test_numbers_are_never_others_than_they_were(field, fits, wrong):
    """Alone, in lists, and in arrays. Floats alone are rounded, to floats, and none becomes infinite."""
    if field == "bf16":
        pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    for value in fits:
        for given, shape in ((value, ()), ([value, value], (2,)), (np.array([value]), (1,))):
            found = next(ps.Dataset([{"x": given}], fields={"x": (field, shape)}).batch(1).loader())["x"].numpy()[0]
            expected = np.asarray(given).astype(found.dtype)
            assert found.tolist() == expected.tolist() and (isinstance(value, (float, np.floating)) or np.all(found == np.asarray(given)))
    for value in wrong:
        for given, shape in ((value, ()), ([value], (1,)), ([type(value)(0), value], (2,)), (np.array([value]), (1,))):
            with pytest.raises(ps.DataError, match=rf"field 'x': ({field} cannot hold|expected {field}|a dtype must be one of)|its 'x' is"):
                next(ps.Dataset([{"x": given}], fields={"x": (field, shape)}).batch(1).loader())


def test_a_namedtuples_parts_are_taken_by_name():
    import collections

    pair = collections.namedtuple("pair", ["a", "b"])
    data = [pair(n, -n) for n in range(3)]
    for fields in ({"a": ("i64", ()), "b": ("i64", ())}, {"b": ("i64", ()), "a": ("i64", ())}, {"b": ("i64", ())}):
        step = next(ps.Dataset(data, fields=fields).batch(3).loader())
        assert {name: step[name].numpy().tolist() for name in fields} == {name: [getattr(one, name) for one in data] for name in fields}
    renamed = next(ps.Dataset(data, names=("x", "y")).batch(3).loader())  # by their places
    assert renamed["x"].numpy().tolist() == [0, 1, 2] and renamed["y"].numpy().tolist() == [0, -1, -2]
    with pytest.raises(ValueError, match="names has a name twice: a, a"):
        ps.Dataset([(1, 2)], names=("a", "a"))


def test_booleans_are_no_positions():
    plan = ps.memory({"x": np.arange(4)})
    for wrong in ([True, False], [np.True_, np.False_], np.array([True, False, True, False])):
        with pytest.raises((TypeError, ValueError), match="select"):
            plan.select(wrong)


def test_integers_beside_floats_make_floats():
    for items in ([1, 0.5, 2], [0.5, 1, 2], [[1, 2], [0.5, 1], [3, 4]], [{"x": [1.5]}, {"x": [2]}, {"x": [3]}]):
        data = ps.Dataset(items)
        step = next(iter(data.batch(3).loader()))
        (field,) = data.fields
        assert field.dtype == "f64"
        wanted = [item["x"] if isinstance(item, dict) else item for item in items]
        assert step[field.name].numpy().tolist() == np.array(wanted, "f8").tolist()
    arrays = [np.array([1, 2]), np.array([0.5, 1.5])]  # which have types of their own
    with pytest.raises(ValueError, match=r"make them one type, and say it: .*'item': \('f64', \(None,\)\)"):
        ps.Dataset(arrays)


@pytest.mark.parametrize(("dtype", "number"), [("f64", 2**53 + 1), ("f64", 2**63 - 1), ("f32", 2**24 + 1), ("f16", 2049), ("f32", 10**18 + 1)])
def test_an_integer_among_floats_is_no_other_number(dtype, number):
    def rows(*items: object) -> list:
        return [step["x"].numpy().tolist() for step in ps.Dataset([{"x": x} for x in items], fields={"x": (dtype, (2,))}).batch(1).loader()]

    for item in ([number, 0.5], (0.5, -number)):
        with pytest.raises(ps.DataError, match=f"expected {dtype} .*, found -?{number} among floats, which {dtype} cannot hold"):
            rows(item)
    assert rows([2**11, 0.5], [-1, 0.25]) == [[[2048, 0.5]], [[-1, 0.25]]]
    if dtype != "f16":
        assert rows([2**40, 0.5], [2.0**24 + 2, 0.25]) == [[[2**40, 0.5]], [[2**24 + 2, 0.25]]]


def test_a_whole_number_is_no_other_float():
    plan = ps.Dataset([{"x": np.arange(2)}, {"x": np.arange(3)}])
    with pytest.raises(ValueError, match="value: a float of 64 bits cannot hold 9007199254740993"):
        plan.map(ps.pad("x", 4, value=(1 << 53) + 1))
    assert next(plan.map(ps.pad("x", 4, value=1 << 53)).batch(2).loader())["x"].numpy()[0, 3] == 1 << 53


def _same(z):
    return z.reshape(1)


def test_truth_values_stay_so():
    records = [{"a": n % 2 == 0, "b": np.bool_(True), "c": np.array([n > 1, False]), "d": [True, n == 0], "e": n % 2 == 0} for n in range(3)]
    dataset = ps.Dataset(records)
    assert [str(field) for field in dataset.fields] == ["a bool []", "b bool []", "c bool [2]", "d bool [2]", "e bool []"]
    step = next(dataset.batch(3).loader())
    for name in "abcde":
        assert step[name].numpy().dtype == np.bool_ and step[name].numpy().tolist() == [np.asarray(record[name]).tolist() for record in records]
    # Numbers are asked for, or refused.
    assert next(ps.Dataset(records[:1], fields={"a": ("u8", ())}).batch(1).loader())["a"].numpy().tolist() == [1]
    for given in (1, np.uint8(1), np.int64(1), [1, 0], np.array([1.5]) > 1):
        bools = ps.Dataset([{"a": given}], fields={"a": ("bool", np.shape(given))})
        assert next(bools.batch(1).loader())["a"].numpy()[0].tolist() == np.asarray(given).astype(bool).tolist()
    with pytest.raises(ValueError, match=r"fields=\{'a': \('i64', \(\)\)\}"):
        ps.Dataset([{"a": True}, {"a": 0}, {"a": 1}])
    assert next(ps.Dataset([{"a": True}, {"a": 0}, {"a": 1}], fields={"a": ("i64", ())}).batch(3).loader())["a"].numpy().tolist() == [1, 0, 1]
    for wrong in (2, np.uint8(2), [1, 2], 1.0, np.float32(1)):
        with pytest.raises(ps.DataError, match=r"bool"):
            next(ps.Dataset([{"a": wrong}], fields={"a": ("bool", np.shape(wrong))}).batch(1).loader())


def test_an_item_without_boxes_has_none_of_its_fields_type():
    boxes = [np.zeros((2, 4), np.float32), np.array([]), [], np.zeros((1, 4), np.float32)]
    for order in ([0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 1, 0]):
        dataset = ps.Dataset([{"boxes": boxes[n], "mask": np.array([True] * len(boxes[n]))} for n in order])
        assert [str(field) for field in dataset.fields] == ["boxes f32 [?,4]", "mask bool [?]"]
        step = next(dataset.map(ps.pad("boxes", 3, lengths="count")).map(ps.pad("mask", 3)).batch(4).loader())
        assert step["count"].numpy().tolist() == [[2, 0, 0, 1][n] for n in order]
        assert step["mask"].numpy().sum(axis=1).tolist() == step["count"].numpy().tolist()


def test_files_of_hugging_face_are_encoded_images(tmp_path):
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    pillow.new("RGB", (8, 8), (9, 8, 7)).save(tmp_path / "a.png")
    file = {"bytes": (tmp_path / "a.png").read_bytes(), "path": None}
    records = [{"image": one, "label": 1} for one in (file, {"bytes": None, "path": str(tmp_path / "a.png")}, {"bytes": file["bytes"]})]
    dataset = ps.Dataset(records)
    assert str(dataset.fields[0]) == "image u8 [?]"
    step = next(dataset.map(ps.decode_image(crop=ps.resize_to(4))).batch(3).loader())
    assert (step["image"].numpy() == (9, 8, 7)).all()
    with pytest.raises(ValueError, match="'image' has neither the bytes nor the path|is a dict"):
        ps.Dataset([{"image": {"bytes": 3}}])
    with pytest.raises(ps.DataError, match="'image' has neither the bytes nor the path of a file"):
        next(ps.Dataset([{"image": {"bytes": None}}]).map(ps.decode_image(crop=ps.resize_to(4))).batch(1).loader())
    missing = [*records, {"image": {"bytes": None, "path": str(tmp_path / "b.png")}, "label": 1}]
    with pytest.raises(ps.DataError, match="sample 3 .*No such file.*b.png"):
        next(ps.Dataset(missing, fields={"image": ("u8", (None,)), "label": ("i64", ())}).map(ps.decode_image(crop=ps.resize_to(4))).batch(4).loader())


@pytest.mark.parametrize(
    ("modes", "field", "shape"),
    [
        (["RGB", "L", "RGB", "RGB", "RGB"], "u8 [?,?,3]", (4, 4, 3)),  # not looked at: the first, the middle and the last are
        (["L", "L", "RGB", "L", "L"], "u8 [?,?,3]", (4, 4, 3)),
        (["RGB", "P", "LA", "RGBA", "CMYK"], "u8 [?,?,3]", (4, 4, 3)),
        (["CMYK"] * 3, "u8 [?,?,3]", (4, 4, 3)),
        (["RGBA"] * 3, "u8 [?,?,3]", (4, 4, 3)),
    ],
)
def test_pil_images_of_any_mode_are_of_one(modes, field, shape):
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    images = [pillow.new("RGB", (6, 5), (200, 100, 50)).convert(mode) for mode in modes]
    dataset = ps.Dataset(images, names=["image"])
    assert str(dataset.fields[0]) == "image " + field
    step = next(dataset.map(ps.crop_image(crop=ps.resize_to(4))).batch(len(modes)).loader())
    assert step["image"].shape == (len(modes), *shape)
    assert step["image"].numpy()[:, 0, 0].tolist() == [list(image.convert("RGB").getpixel((0, 0))) for image in images]


def test_pil_images_with_a_palette_have_its_colours():
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    colours = pillow.new("RGB", (4, 4), (200, 100, 50)).quantize(4)
    assert colours.mode == "P"
    resize = ps.crop_image(crop=ps.resize_to(4), field="item")
    step = next(ps.Dataset([colours] * 3).map(resize).batch(3).loader())
    assert step["item"].numpy()[:, 0, 0].tolist() == [[200, 100, 50]] * 3
    grey = [pillow.new("L", (4, 4), 7)] * 2
    with pytest.raises(ps.DataError, match=r"a palette here.*\(None, None, 3\).*as of a mask, return numpy.asarray"):
        list(ps.Dataset([grey[0], colours, *grey, *grey]).map(_first_row, outputs={"item": ("u8", (4,))}).batch(5).loader())
    mixed = ps.Dataset([grey[0], pillow.new("1", (4, 4), 1), grey[0]])
    assert [str(field) for field in mixed.fields] == ["item u8 [?,?]"]
    assert next(mixed.map(_first_row, outputs={"item": ("u8", (4,))}).batch(3).loader())["item"].numpy()[:, 0].tolist() == [7, 255, 7]


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 1)])
def test_pil_images_of_two_colours_are_no_numbers(shape):
    pillow = pytest.importorskip("PIL.Image")
    image = pillow.new("1", (4, 4), 1)
    with pytest.raises(ps.DataError, match=r"mode 1 here, whose pixels are no numbers, and the field is i64: return numpy.asarray\(image\)"):
        next(iter(ps.Dataset([{"mask": image}], fields={"mask": ("i64", shape)}).batch(1).loader()))
    levels = next(iter(ps.Dataset([{"mask": image}], fields={"mask": ("u8", shape)}).batch(1).loader()))
    assert (levels["mask"].numpy() == 255).all()
    numbers = next(iter(ps.Dataset([{"mask": np.asarray(image)}], fields={"mask": ("i64", (4, 4))}).batch(1).loader()))
    assert (numbers["mask"].numpy() == 1).all()


def test_pil_images_that_would_lose_something_say_so():
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    grey = [pillow.new("L", (4, 4), 7)] * 2
    images = [*grey, pillow.new("RGB", (4, 4), (200, 100, 50)), *grey, *grey]
    with pytest.raises(ps.DataError, match=r"mode RGB here, and one of grey levels.*fields=\{'item': \('u8', \(None, None, 3\)\)\}.* \(None, None, 1\) for grey"):
        list(ps.Dataset(images).map(_first_row, outputs={"item": ("u8", (4,))}).batch(7).loader())
    for channels, expected in [(3, [[7, 7, 7], [200, 100, 50]]), (1, [[7], [124]])]:
        dataset = ps.Dataset([images[0], images[2]], fields={"item": ("u8", (None, None, channels))})
        step = next(dataset.map(ps.crop_image(crop=ps.resize_to(4), field="item")).batch(2).loader())
        assert step["item"].numpy()[:, 0, 0].tolist() == expected
    alpha = ps.Dataset([pillow.new("RGBA", (4, 4), (1, 2, 3, 4))] * 2, fields={"item": ("u8", (None, None, 4))})
    assert next(alpha.map(_first_pixel, outputs={"item": ("u8", (4,))}).batch(2).loader())["item"].numpy().tolist() == [[1, 2, 3, 4]] * 2
    wide = [pillow.new("RGB", (4, 4)), pillow.new("I;16", (4, 4))]
    with pytest.raises(ps.DataError, match="mode I;16 here, which has no RGB of its own"):
        list(ps.Dataset(wide, fields={"item": ("u8", (None, None, 3))}).map(ps.crop_image(crop=ps.resize_to(4), field="item")).batch(2).loader())


def _first_row(item):
    return item[0]


def _first_pixel(item):
    return item[0, 0]


def test_a_dict_in_an_item_is_no_field():
    with pytest.raises(ValueError, match="'meta' of item 0 is a dict, and a field cannot be one: put its values beside the others, such as 'meta_id', 'meta_name'"):
        ps.Dataset([{"meta": {"id": 1, "name": "a"}}])


def test_texts_and_decoded_images_say_how_they_become_one_size():
    for value, remedy in [
        ("abc", r"encoded images by decode_image\(field='item', crop=random_resized_crop\(224\)\), texts and lists by pad\('item', 64\)"),
        ([1, 2], r"for example by pad\('item', 64\)"),
        (np.zeros((3, 3, 3), np.uint8), r"for example by crop_image\(field='item', crop=random_resized_crop\(224\)\)"),
        (np.zeros((3, 3), np.float32), "by a function of your own"),
    ]:
        shape = (None,) * np.ndim(np.frombuffer(value.encode(), "u1") if isinstance(value, str) else value)
        dtype = "u8" if isinstance(value, str) else np.asarray(value).dtype.name
        with pytest.raises(ValueError, match="differ in size.*" + remedy):
            ps.Dataset([value], fields={"item": (dtype, shape)}).batch(1).loader()


def test_an_item_without_tokens_is_of_its_fields_type():
    class Texts:
        def __len__(self):
            return 4

        def __getitem__(self, number):
            return {"tokens": [[1, 2, 3], [4], [5], []][number]}

    plan = ps.Dataset(Texts(), lengths=[3, 1, 1, 0])
    assert [(field.dtype, field.shape) for field in plan.fields] == [("i64", (None,))]
    (step,) = plan.pack(5).batch(1).loader()
    assert step["tokens"].numpy().tolist() == [[1, 2, 3, 4, 5]]
