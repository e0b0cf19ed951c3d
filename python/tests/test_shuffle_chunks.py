"""shuffle_chunks(): chunks of the source in a random order, each read as a whole."""
import itertools
import pickle

import numpy as np
import pytest

import penstock as ps

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 400


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(1)
    texts = [random.bytes(1000) for _ in range(ROWS)]
    return pa.table({"number": np.arange(ROWS), "text": pa.array(texts, type=pa.binary())})


@pytest.fixture(scope="module")
def file(table, tmp_path_factory):
    """Row groups of 150 rows, whose texts have pages of 16 to 20 rows."""
    path = tmp_path_factory.mktemp("tables") / "rows.parquet"
    pq.write_table(table, path, compression="gzip", row_group_size=150, data_page_size=16_000, write_batch_size=4,
                   use_dictionary=False)
    return path


def numbers(plan, **options):
    return [int(n) for step in plan.batch(7).loader(**options) for n in np.asarray(step["number"])]


def runs(numbers):
    """Begins and lengths of runs of consecutive numbers."""
    all = []
    for number in numbers:
        if all and number == sum(all[-1]):
            all[-1][1] += 1
        else:
            all.append([number, 1])
    return sorted(map(tuple, all))


def test_pages_of_parquet(file):
    data = ps.parquet(file, columns=["number", ps.TableColumn("text", shape=(1000,))])
    first, second = (numbers(data.shuffle_chunks(seed=seed)) for seed in (1, 2))
    assert first != second and sorted(first) == sorted(second) == list(range(ROWS))
    assert first != sorted(first)
    begins = sorted({begin for seed in range(20) for begin, _ in runs(numbers(data.shuffle_chunks(seed=seed)))})
    assert {0, 150, 300} <= set(begins)                             # pages end where row groups do
    assert 4 <= max(np.diff([*begins, ROWS])) <= 20 and len(begins) >= 20
    # Of the numbers alone, each row group is one page.
    assert {begin for seed in range(20)
            for begin, _ in runs(numbers(ps.parquet(file, columns=["number"]).shuffle_chunks(seed=seed)))} == {0, 150, 300}


def test_each_page_is_read_once(tmp_path):
    def bytes_read(plan):
        loader = plan.batch(10).loader(threads=1)
        for _ in loader:
            pass
        return loader.stats().bytes_read

    rows = 3000
    texts = [np.random.default_rng(k).bytes(1000) for k in range(rows)]
    pq.write_table(pa.table({"number": np.arange(rows), "text": pa.array(texts, type=pa.binary())}), tmp_path / "t.parquet",
                   compression="gzip", data_page_size=16_000, write_batch_size=4, use_dictionary=False)
    # The pages of four times the rows of the window.
    data = ps.parquet(tmp_path / "t.parquet", page_cache_bytes=400_000).map(ps.pad("text", 1000)).seed(3)
    in_order = bytes_read(data)
    assert bytes_read(data.shuffle()) > 5 * in_order
    chunks = data.shuffle_chunks().shuffle(buffer=50)
    assert bytes_read(chunks) < 1.25 * in_order
    mixed = numbers(chunks)
    assert sorted(mixed) == list(range(rows)) and len(runs(mixed)) > rows // 2


def test_the_same_on_any_threads_and_after_any_step(file):
    data = ps.parquet(file).map(ps.pad("text", 1000)).split([0.8, 0.2], seed=1)[0]
    plan = data.seed(5).shuffle_chunks().shuffle(buffer=30).batch(9).repeat(2)
    loader = plan.loader(threads=1, digest=True)
    states, batches = [], []
    for step in loader:
        batches.append(np.asarray(step["number"]).tolist())
        states.append(loader.state_dict())
    one_epoch = len(batches) // 2
    assert batches[:one_epoch] != batches[one_epoch:]
    assert sorted(itertools.chain(*batches[:one_epoch])) == sorted(itertools.chain(*batches[one_epoch:]))
    for threads in (2, 5):
        other = plan.loader(threads=threads, digest=True)
        for _ in other:
            pass
        assert other.digest == loader.digest
    for again in (plan, ps.Dataset.from_json(plan.to_json()), pickle.loads(pickle.dumps(plan))):
        for k in range(0, len(states), 5):
            resumed = again.loader()
            resumed.load_state_dict(states[k])
            assert [np.asarray(step["number"]).tolist() for step in resumed] == batches[k + 1:]


def test_other_sources(table, tmp_path):
    with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=90)
    whole = {0, 90, 180, 270, 360}
    for data in (ps.arrow(tmp_path / "rows.arrow"), ps.arrow_table(pa.ipc.open_file(tmp_path / "rows.arrow").read_all())):
        data = data.map(ps.pad("text", 1000))
        assert {begin for seed in range(30) for begin, _ in runs(numbers(data.shuffle_chunks(seed=seed)))} == whole
        # In concatenations each data set has its own; a rename changes none.
        both = ps.concatenate([data, data.skip(200)])
        assert {begin for seed in range(30) for begin, _ in runs(numbers(both.shuffle_chunks(seed=seed)))} == {
            0, 90, 180, 200, 270, 360}
    rows = ps.arrow_table(table.combine_chunks(), rows=[5, 6, 7, 100]).rename({"number": "n"})
    assert rows.shuffle_chunks(seed=1).samples == 4


def test_states_know_the_chunks(table):
    """The same rows in other batches have another order."""
    def plan(rows):
        parts = table.select(["number"]).to_batches(max_chunksize=rows)
        return ps.arrow_table(pa.Table.from_batches(parts)).shuffle_chunks(seed=1).batch(10)

    loader = plan(50).loader()
    next(loader)
    plan(50).loader().load_state_dict(loader.state_dict())
    with pytest.raises(ps.Error, match="shuffle_chunks"):
        plan(80).loader().load_state_dict(loader.state_dict())


def test_what_is_refused(file):
    data = ps.parquet(file, columns=["number"])
    for plan, why in ((data.repeat(), "repeat"), (data.shuffle(seed=1), "put it before shuffle"),
                      (data.batch(2), "put it before batch"), (ps.mix([data, data]), "a mix")):
        with pytest.raises(ValueError, match=why):
            plan.shuffle_chunks()
    with pytest.raises(ValueError, match="are in no chunks, and cost the same in any order"):
        ps.memory({"x": np.arange(5)}).shuffle_chunks()
    context = ps.InputContext(num_input_pipelines=2, input_pipeline_id=0)
    with pytest.raises(ValueError, match="shuffle_chunks goes by positions"):
        data.shuffle_chunks(seed=1).batch(2).loader(context=context, mode="per_worker")


def test_pages_that_share_a_large_dictionary_stay_together(tmp_path):
    texts = [np.random.default_rng(k).bytes(1000) for k in range(300)]
    pq.write_table(pa.table({"number": np.arange(300), "text": pa.array(texts, type=pa.binary())}), tmp_path / "t.parquet",
                   row_group_size=100, data_page_size=30, write_batch_size=10, use_dictionary=["text"])
    data = ps.parquet(tmp_path / "t.parquet").map(ps.pad("text", 1000))
    assert {begin for seed in range(20) for begin, _ in runs(numbers(data.shuffle_chunks(seed=seed)))} == {0, 100, 200}
