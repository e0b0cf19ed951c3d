"""Wrong calls: the message names the argument and the nearest right name, and there is nothing of C++ in it."""

from __future__ import annotations

import inspect
import json
import pickle
import re

import numpy as np
import pytest
from conftest import evaluate, numbers

import penstock as ps
from penstock._calls import OF_FROM_DATASET, OF_JAX_LOADER, OF_RECIPES, OF_TORCH_LOADER

IMAGES = {"image": np.zeros((4, 8, 8, 3), np.uint8)}

WRONG = [
    (lambda: numbers(4).batch(2).loader(on_falt="mask"), "loader() has no option 'on_falt': did you mean 'on_fault'?"),
    (lambda: numbers(4).batch(2, drop_last=True), "batch() has no option 'drop_last': it is remainder='drop'"),
    (lambda: numbers(4).shuffle(buffer_size=3), "shuffle() has no option 'buffer_size': it is buffer"),
    (lambda: numbers(4).batch(2).loader(num_workers=3), "loader() has no option 'num_workers': it is threads"),
    (lambda: numbers(4).take(2, zzz=1), "take() has no option 'zzz': it has count"),
    (lambda: ps.host_devices(), "host_devices() needs 'count', an integer"),
    (lambda: ps.decode_views({"a": ps.letterbox(8)}), "expected views by the names of their fields"),
    (lambda: ps.decode_image(flip=0.5), "decode_image() needs 'crop', a Crop: crop=..."),
    (lambda: numbers(4).batch(2, "drop"), "batch() takes 1 arguments by position (global_batch), found 2; by name: remainder=..."),
    (lambda: numbers(4).batch("2"), "batch(): 'global_batch' must be an integer, found '2' (str)"),
    (lambda: numbers(4).batch(np.array([1, 2])), "batch(): 'global_batch' must be an integer, found array([1, 2]) (ndarray)"),
    (lambda: numbers(4).batch(2.0), "batch(): 'global_batch' must be an integer, found 2.0 (float)"),
    (lambda: numbers(4).batch(-1), "batch(): 'global_batch' must be 0 or more, found -1"),
    (lambda: numbers(4).take(2**70), f"take(): 'count' is too large, found {2**70}"),
    (lambda: numbers(4).select([0, -1]), "select(): 'positions' [1] must be 0 or more, found -1"),
    (lambda: numbers(4).select(3), "select(): 'positions' must be a list of integers or an array, found 3 (int)"),
    (lambda: numbers(4).select(np.array(3)), "select(): 'positions' must be a list of integers or an array, found array(3) (ndarray)"),
    (lambda: numbers(4).select(np.array([True, False])), "select(): 'positions' [0] must be an integer, found"),
    (lambda: numbers(4).select(np.array([1.0])), "select(): 'positions' [0] must be an integer, found"),
    (lambda: ps.center_crop(np.array(2.5)), "center_crop(): 'size' must be an integer or 2 integers, found array(2.5) (ndarray)"),
    (lambda: numbers(4).sample([1, None, 2, 3]), "sample(): 'weights' [1] must be a number, found None (NoneType)"),
    (lambda: numbers(4).batch(2).loader(exchange=3), "loader(): 'exchange' must be a function or None, found 3 (int)"),
    (lambda: numbers(4).batch(2).loader(retry_initial_backoff="1"), "loader(): 'retry_initial_backoff' must be a number, found '1' (str)"),
    (lambda: numbers(4).batch(2).loader(attempts=3), "loader() has no option 'attempts': did you mean 'retry_attempts'?"),
    (lambda: numbers(4).batch(2).loader(thread_budget=3), "loader(): 'thread_budget' must be a ThreadBudget or None, found 3 (int)"),
    (lambda: ps.prepare("a", "b", also=3), "prepare(): 'also' must be a string or a list of strings, found 3 (int)"),
    (lambda: ps.prepare("a", "b", progress=3), "prepare(): 'progress' must be a function or None, found 3 (int)"),
    (lambda: ps.Queue({"x": ("f32", ())}, capacity="9"), "Queue(): 'capacity' must be an integer, found '9' (str)"),
    (lambda: ps.InputContext(2, "1"), "InputContext(): 'input_pipeline_id' must be an integer, found '1' (str)"),
    (lambda: ps.transcode_jpeg("text"), "transcode_jpeg(): 'jpeg' must be bytes, found 'text' (str)"),
    (lambda: ps.image_sizes(3), "image_sizes(): 'dataset' must be a Dataset, found 3 (int)"),
    (lambda: numbers(4).batch(2).loader(max_faults="9"), "loader(): 'max_faults' must be an integer or None, found '9' (str)"),
    (lambda: numbers(4).batch(2).loader().load_state_dict(3), "load_state_dict takes what state_dict() returned, or its JSON, found 3"),
    (lambda: numbers(4).batch(2).loader(context=3), "loader(): 'context' must be an InputContext or None, found 3 (int)"),
    (lambda: ps.MemoryJpegIndex(maxbytes=3), "MemoryJpegIndex() has no option 'maxbytes': did you mean 'max_bytes'?"),
    (lambda: ps.Queue({"x": ("f32", ())}, 5), "Queue() takes 1 arguments by position (fields), found 2; by name: capacity=..."),
    (lambda: ps.FieldSpec("x"), "FieldSpec() needs 'dtype', a string"),
    (lambda: ps.RandomErasing("x"), "RandomErasing(): 'probability' must be a number, found 'x' (str)"),
    (lambda: ps.augment.brightness((1, 2, 3)), "brightness(): 'factor' must be a number or 2 numbers, found (1, 2, 3) (tuple)"),
    (lambda: ps.augment.brightness(1, factor=2), "brightness(): multiple values for argument 'factor'"),
    (lambda: ps.augment.random_choice([ps.augment.flip(), 3]), "random_choice(): 'operations' [1] must be an Augmentation, found 3 (int)"),
    (lambda: ps.center_crop("224"), "center_crop(): 'size' must be an integer or 2 integers, found '224' (str)"),
    (lambda: ps.center_crop(224, resize=True), "center_crop(): 'resize' must be an integer, found True (bool)"),
    (lambda: ps.center_crop(2**70), f"center_crop(): 'size' is too large, found {2**70}"),
    (lambda: ps.letterbox(8, fill=(1, 2)), "letterbox(): 'fill' must be an integer or 3 integers, found (1, 2) (tuple)"),
    (lambda: ps.decode_image(crop=ps.letterbox(8), index=3), "decode_image(): 'index' must be a JpegIndex or None, found 3 (int)"),
    (lambda: ps.ImageView(ps.letterbox(8), field="x"), "ImageView() has no option 'field': it has crop, count, flip, filter, geometry"),
    (lambda: ps.pad("tokens", 3.0), "pad(): 'to' must be an integer, found 3.0 (float)"),
    (lambda: numbers(4).map(3), "map takes a Transform such as decode_image(...), or a Python function with its outputs, found 3"),
]


@pytest.mark.parametrize("call, message", WRONG, ids=[message[:40] for _, message in WRONG])
def test_a_wrong_call_is_told_in_words(call, message):
    with pytest.raises(TypeError) as raised:
        call()
    assert message in str(raised.value)
    assert "incompatible" not in str(raised.value) and "nanobind" not in str(raised.value)


WRONG_VALUES = [
    (lambda: numbers(4).map(lambda number: number), "needs outputs, the fields that it returns"),
    (lambda: numbers(4).batch(2).loader().load_state_dict("run.json"), "found 'run.json': of a file, json.load(open(path))"),
    (lambda: ps.memory(IMAGES).batch(2).transform_on_device(mean=[123, 116, 103]), "divide mean and standard deviation by 255"),
    (lambda: ps.center_crop(224, resize=200), "raise resize"),
    (lambda: ps.letterbox(224, fill=300), "letterbox: fill: a level is 0 to 255, found 300"),
    (lambda: ps.augment.rotate(5, fill=300), "fill: a level is 0 to 255, found 300"),
    (lambda: ps.augment.rotate(5, interpolation="cubic"), "interpolation must be one of 'nearest', 'bilinear', 'bicubic', found 'cubic'"),
    (lambda: ps.random_crop(32, padding=32), "less than the crop of 32x32"),
    (lambda: ps.decode_views({}), "give 1 to 256 views, found 0"),
    (lambda: ps.decode_views({"a": ps.ImageView(ps.letterbox(8), count=-1)}), "decode_views: 'a': count is 0, or up to 256 crops"),
    (lambda: ps.crop_image(crop=ps.letterbox(8), flip=2), "crop_image: flip is a probability"),
]


@pytest.mark.parametrize("call, message", WRONG_VALUES, ids=[message[:40] for _, message in WRONG_VALUES])
def test_a_wrong_value_is_told_in_words(call, message):
    with pytest.raises(ValueError) as raised:
        call()
    assert message in str(raised.value) and "::" not in str(raised.value)


def test_one_number_stands_for_all_channels():
    one = ps.memory(IMAGES).batch(2).transform_on_device(mean=0.5, std=0.25, erase=ps.RandomErasing(0.5, value=0.1))
    three = ps.memory(IMAGES).batch(2).transform_on_device(mean=[0.5], std=[0.25], erase=ps.RandomErasing(0.5, value=[0.1]))
    assert one.describe() == three.describe()


def test_signatures_are_there():
    batch = inspect.signature(ps.Dataset.batch)
    assert list(batch.parameters) == ["self", "global_batch", "remainder", "uneven"]
    assert batch.parameters["remainder"].default == "keep" and batch.return_annotation == "Dataset"
    assert inspect.signature(ps.decode_image).parameters["max_megapixels"].default == 200.0
    assert inspect.signature(ps.random_resized_crop).parameters["ratio"].default == (3 / 4, 4 / 3)
    assert inspect.signature(ps.Queue).parameters["capacity"].default == 1024
    assert "global_batch" in str(inspect.signature(numbers(3).batch))
    for name in ps.__all__:
        thing = getattr(ps, name)
        if inspect.isfunction(thing):
            assert inspect.signature(thing) and thing.__module__.startswith("penstock"), name
        if inspect.isclass(thing):
            for inner, method in vars(thing).items():
                if not inner.startswith("_") and callable(method):
                    assert inspect.signature(method), f"{name}.{inner}"


def test_what_is_called_stays_what_it_was():
    assert pickle.loads(pickle.dumps(ps.decode_image)) is ps.decode_image
    assert ps.Dataset.batch.__doc__.startswith("Makes global batches of") and ps.Dataset.batch.__qualname__ == "Dataset.batch"
    assert isinstance(ps.Dataset.from_json(ps.synthetic_images(3).to_json()), ps.Dataset)  # a static method
    with pytest.raises(ps.Error):  # errors of the library itself are left alone
        ps.image_folder("/no/such/folder")


def test_a_type_error_of_a_callback_stays_as_it_is():
    def keep(record):
        raise TypeError("keep(): incompatible function arguments")

    with pytest.raises(TypeError, match=r"^keep\(\): incompatible function arguments$"):
        ps.synthetic_images(3).filter(keep)


def test_errors_are_the_packages_own():
    assert ps.DataError.__module__ == "penstock" and ps.sync.SyncError.__module__ == "penstock.sync"
    assert pickle.loads(pickle.dumps(ps.Error("x"))).args == ("x",)


# ---- plans as text ----

CROPS = [
    ps.random_resized_crop(224),
    ps.center_crop((100, 200), resize=300),
    ps.resize_to((3, 4)),
    ps.letterbox(64),
    ps.letterbox((64, 32), fill=(1, 2, 3)),
    ps.random_crop(32, padding=4),
    ps.random_crop((32, 40), fill=7, pad_if_needed=True),
    ps.scale_jitter(64),
    ps.cover_crop(64),
    ps.cover_crop((64, 96), position="random"),
    ps.scale_jitter(64, scale=(0.5, 1), fill=9),
]


def plans() -> list[ps.Dataset]:
    images = ps.synthetic_images(20)
    decoded = [images.map(ps.decode_image(crop=crop, flip=0.5, decoder="fast", geometry="g")) for crop in CROPS]
    samples = ps.synthetic_images(20, seed=3, classes=4).seed(3).map(ps.decode_image(crop=ps.resize_to(8), filter="bicubic"))
    return [
        images,
        *decoded,
        images.shuffle(buffer=7).take(9).skip(2).shard(2, 1).select([1, 2, 2]),
        ps.mix([images, images.shuffle(seed=1)], weights=[1, 2], seed=3),
        ps.concatenate([images, images.take(3)]),
        samples.repeat(3).batch(4, remainder="drop").prefetch_to_devices("host:2", depth=3),
        samples.batch(4).transform_on_device(mean=0.5, std=[0.1, 0.2, 0.3], dtype="f16", erase=ps.RandomErasing(0.5, area=(0.1, 0.2))),
        images.map(ps.decode_image(crop=ps.letterbox(8), background=255)),
        images.map(ps.decode_views({"all": ps.ImageView(ps.letterbox(8)), "parts": ps.ImageView(CROPS[0], count=2, flip=0.5)}, background=(1, 2, 3))),
        samples.map(ps.crop_image(crop=ps.random_crop(6, padding=1), flip=0.5)),
        samples.sample([1.0] * 20, count=7).batch(2).shuffle(seed=1, reshuffle_each_epoch=False).repeat(),
    ]


@pytest.mark.parametrize("number", range(len(plans())))
def test_a_plan_prints_as_the_python_that_makes_it(number):
    plan = plans()[number]
    again = evaluate(repr(plan))
    assert again.to_json() == plan.to_json()
    assert str(plan) == repr(plan)


def test_a_folder_and_arrays_print_as_python(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 2), np.float32))
    (tmp_path / "raw").write_bytes(bytes(40))
    plan = ps.arrays({"x": tmp_path / "x.npy", "y": ps.ArrayField(tmp_path / "raw", dtype="u32", shape=(2,))})
    assert evaluate(repr(plan)).to_json() == plan.to_json()


def test_other_plans_are_described():
    assert re.fullmatch(r"memory\(4 rows, [0-9a-f]{16}\)\.shuffle\(seed=1\)", repr(numbers(4).shuffle(seed=1)))
    assert repr(ps.synthetic_images(100).select(range(50))) == "synthetic_images(count=100).select(<50 positions>)"
    assert "number" in numbers(4)._repr_html_() and "4 samples" in numbers(4)._repr_html_()
    assert "<script>" not in ps.memory({"<script>": np.zeros(3)})._repr_html_()


def test_what_a_plan_is():
    assert numbers(10).batch_size is None and numbers(10).batch(4).batch_size == 4
    assert numbers(10).devices == [] and [str(one) for one in numbers(4).batch(4).prefetch_to_devices("host:2").devices] == ["host:0", "host:1"]
    assert not numbers(10).is_stream and ps.Dataset(ps.Queue({"x": ("f32", ())})).batch(2).is_stream
    with pytest.raises(TypeError, match="reads a stream"):
        len(ps.generator({"x": ("f32", ())}, []))


CROP_NAMES = ["random_resized_crop", "center_crop", "five_crops", "ten_crops", "resize_to", "letterbox", "cover_crop", "random_crop", "scale_jitter", "random_iou_crop", "mosaic", "copy_paste", "resize_shortest", "box_safe_crop"]
TRANSFORMS = ["decode_image", "decode_views", "crop_image", "augment_image", "pad"]
OPERATIONS = [name for name in ps.augment.__all__ if name != "Augmentation"]
PLAN = ["blocks", "pack", "partners", "seed", "shuffle", "repeat", "repeat_each", "take", "skip", "shard", "select", "where", "sample", "batch", "prefetch_to_devices"]
JOINS = ["mix", "concatenate", "zip"]
FROM_HEADERS = [getattr(ps.Dataset, name) for name in PLAN] + [getattr(ps, name) for name in [*CROP_NAMES, *TRANSFORMS, *JOINS]] + [getattr(ps.augment, name) for name in OPERATIONS] + [ps.ImageView]


@pytest.mark.parametrize("function", FROM_HEADERS, ids=lambda function: function.__name__)
def test_every_argument_is_explained(function):
    doc = function.__init__.__doc__ if isinstance(function, type) else function.__doc__
    assert doc
    for name in inspect.signature(function).parameters:
        assert name == "self" or f"`{name}`" in doc or any(line.startswith(f"  {name} ") for line in doc.splitlines()), name


GIVEN = {
    "size": 32, "height": 8, "width": 8, "factor": 0.5, "turn": 0.1, "bits": 4, "kernel_size": 3, "degrees": 5, "x": 0.1, "y": 0.2,
    "probability": 0.5, "operations": [ps.augment.flip()],
}  # fmt: skip


def required(function) -> dict:
    parameters = inspect.signature(function).parameters.values()
    return {one.name: GIVEN[one.name] for one in parameters if one.default is one.empty}


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "three_augment"])  # which is made of others
def test_defaults_of_operations_are_those_of_plans(name):
    function = getattr(ps.augment, name)
    given = required(function)
    made = function(**given)
    written = json.loads(made.to_json())[name]
    always_in_plans = ("y", "config")
    shortest = {field: value for field, value in written.items() if field in given or field in always_in_plans}
    assert ps.augment.Augmentation.from_json(json.dumps({name: shortest})) == made


@pytest.mark.parametrize("name", CROP_NAMES)
def test_defaults_of_crops_are_those_of_plans(name):
    made = getattr(ps, name)(**required(getattr(ps, name)))
    size = json.loads(made.__reduce__()[1][0])[name]["size"]
    assert ps.Crop._unpickle(json.dumps({name: {"size": size}})) == made


def test_a_zero_dimensional_array_is_a_number():
    assert ps.augment.brightness(np.array(0.5)) == ps.augment.brightness(0.5)
    assert ps.augment.color_jitter(np.array(0.5)) == ps.augment.color_jitter(0.5)
    assert ps.center_crop(np.array(32)) == ps.center_crop(32)
    assert ps.letterbox(8, fill=np.array(7)) == ps.letterbox(8, fill=7)
    assert ps.random_resized_crop(np.array([8, 9]), scale=np.array([0.5, 1])) == ps.random_resized_crop((8, 9), scale=(0.5, 1))


VIEW = ps.ImageView(ps.random_crop((32, 24), fill=(1, 2, 3)), count=2, flip=0.5, filter="nearest", geometry="where")
OPTIONS = {
    "decode_image": {"crop": ps.center_crop(32), "field": "bytes", "flip": 0.25, "scaled": True, "background": (1, 2, 3), "masks": "mask"},
    "decode_views": {"views": {"a": VIEW}, "exif": False, "dtype": "u16", "tolerant": True, "max_megapixels": 3},
    "crop_image": {"crop": ps.resize_to((8, 9)), "filter": "bicubic", "masks": ["a", "b"], "mask_fill": 0, "mask_dtype": "i64"},
    "augment_image": {"operations": [ps.augment.rotate((-5, 5), fill=(1, 2, 3)), ps.augment.color_jitter(0.4, hue=0.1)], "masks": ("mask",)},
    "pad": {"field": "tokens", "to": 9, "value": 1.5, "truncate": True, "lengths": "length"},
}  # fmt: skip


def as_in_plans(value):
    if isinstance(value, ps.Crop):
        return json.loads(value.__reduce__()[1][0])
    if isinstance(value, ps.augment.Augmentation):
        return json.loads(value.to_json())
    if isinstance(value, ps.ImageView):
        return {"crop": as_in_plans(value.crop), "count": value.count, "flip": value.flip, "filter": value.filter, "geometry": value.geometry}
    if isinstance(value, dict):
        return [{"field": field, **as_in_plans(view)} for field, view in value.items()]
    return [as_in_plans(one) for one in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", OPTIONS)
def test_options_arrive_in_plans(name):
    made = getattr(ps, name)(**OPTIONS[name])
    written = json.loads(made.__reduce__()[1][1])
    for option, value in OPTIONS[name].items():
        assert value != inspect.signature(getattr(ps, name)).parameters[option].default
        assert written[option] == as_in_plans([value] if option == "masks" and isinstance(value, str) else value), option
    assert repr(pickle.loads(pickle.dumps(made))) == repr(made)


def test_an_image_view_prints_as_the_python_that_makes_it():
    again = evaluate(repr(VIEW))
    for view in (again, pickle.loads(pickle.dumps(VIEW))):
        assert as_in_plans(view) == as_in_plans(VIEW)
    assert VIEW.count == 2 and VIEW.flip == 0.5 and VIEW.filter == "nearest" and VIEW.geometry == "where"


def test_a_time_is_passed_in_seconds():
    assert inspect.signature(ps.Dataset.loader).parameters["retry_initial_backoff"].default == 0.05
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="retry_initial_backoff: expected seconds, at least 0, found"):
            numbers(4).batch(2).loader(retry_initial_backoff=wrong)
    with pytest.raises(ValueError, match="initial_backoff of 0 s to 1 h, found 5 and 3600001 ms"):
        numbers(4).batch(2).loader(retry_initial_backoff=3600.0006)  # rounded to milliseconds


def test_a_context_travels():
    context = ps.InputContext(4, input_pipeline_id=3)
    again = pickle.loads(pickle.dumps(context))
    assert repr(again) == repr(context) == "InputContext(num_input_pipelines=4, input_pipeline_id=3, num_replicas_in_sync=0)"
    assert (again.num_input_pipelines, again.input_pipeline_id, again.num_replicas_in_sync) == (4, 3, 0)


def test_an_index_and_statistics_arrive():
    index = ps.MemoryJpegIndex()
    stats = ps.JpegStats()
    plan = ps.synthetic_images(4).map(ps.decode_image(crop=ps.center_crop(32), index=index, stats=stats)).batch(4)
    for _ in plan.loader():
        pass
    assert len(index) == 4 and stats.counts()["own"] == 4


# What torch's DataLoader takes, but for `dataset`.
OF_TORCH = [
    "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory", "drop_last", "timeout", "worker_init_fn",
    "multiprocessing_context", "generator", "prefetch_factor", "persistent_workers", "pin_memory_device", "in_order",
]  # fmt: skip


def answer_of(call, word):
    with pytest.raises(TypeError) as raised:
        call(**{word: 1})
    return str(raised.value)


@pytest.mark.parametrize("word", OF_TORCH)
def test_each_option_of_torchs_loader_is_answered_by_what_is_called(word):
    batches = numbers(4).batch(2)
    for name, call in [("loader", batches.loader), ("Dataset", lambda **more: ps.Dataset([1, 2], **more)), ("batch", lambda **more: numbers(4).batch(2, **more))]:
        answer = answer_of(call, word)
        assert answer.startswith(f"{name}() has no option '{word}': ") and "did you mean" not in answer and " it has " not in answer, answer
    for name in ps.recipes.__all__:
        recipe = getattr(ps.recipes, name)
        if callable(recipe):
            answer = answer_of(lambda **more: recipe(numbers(4), 2, **more), word)
            assert answer == f"{name}() has no option '{word}': {OF_RECIPES[word]}"
            assert ".shuffle() of the plan" not in answer and "of batch()" not in answer
    for table in (OF_TORCH_LOADER, OF_JAX_LOADER):
        assert "of loader()" not in table[word] and "prefetch_to_devices" not in table[word] and "batch()" not in table[word]
    # These it takes itself.
    assert word in ("batch_size", "shuffle", "drop_last") or "of the plan" not in OF_FROM_DATASET[word]


def test_what_the_answers_of_recipes_and_data_sets_say_to_write_runs():
    data = ps.memory(IMAGES)
    for part in (data.select([0, 2]), data.seed(7)):
        assert ps.recipes.cifar_train(part, 2, size=8).batch_size == 2
    assert "workers=4" in answer_of(lambda **more: ps.Dataset([1, 2], **more), "num_workers") and len(ps.Dataset([1, 2], workers=4)) == 2


FIELDS = {
    "photo": lambda: ps.synthetic_images(2).rename({"image": "photo"}),
    "picture": lambda: ps.memory({"picture": np.zeros((2, 8, 8, 3), np.uint8), "label": np.zeros(2, np.int64)}),
    "several": lambda: ps.Dataset([{"several": np.zeros((n, 8, 3), np.uint8)} for n in (3, 4)], fields={"several": ("u8", (None, None, 3))}),
    "lines": lambda: ps.Dataset([{"lines": [1]}, {"lines": [1, 2]}]).map(ps.pad("lines", 2, lengths="length")),
}


@pytest.mark.parametrize("data, call, part", [
    ("photo", lambda **more: ps.decode_image(**{"crop": ps.resize_to(8), **more}), "name it by"),
    ("photo", lambda **more: ps.decode_image(**{"field": "label", "crop": ps.resize_to(8), **more}), "name it by"),
    ("photo", lambda **more: ps.decode_views({"a": ps.ImageView(ps.resize_to(8))}, **more), "name it by"),
    ("photo", lambda **more: ps.crop_image(**{"field": "photo", "crop": ps.resize_to(8), **more}), "decodes and crops it"),
    ("photo", lambda **more: ps.augment_image([ps.augment.invert()], **{"field": "photo", **more}), "before"),
    ("picture", lambda **more: ps.decode_image(**{"field": "picture", "crop": ps.resize_to(8), **more}), "decoded already"),
    ("picture", lambda **more: ps.crop_image(**{"crop": ps.resize_to(8), **more}), "name it by"),
    ("picture", lambda **more: ps.augment_image([ps.augment.invert()], **more), "name it by"),
    ("several", lambda **more: ps.augment_image([ps.augment.invert()], **{"field": "several", **more}), "before"),
    ("several", lambda **more: ps.pad(**{"field": "several", "to": 8, **more}), "one size"),
    ("lines", lambda **more: ps.decode_image(**{"field": "length", "crop": ps.resize_to(8), **more}), "no field of the samples is one"),
    ("lines", lambda **more: ps.pad(**{"field": "length", "to": 8, **more}), "leave this out"),
    ("lines", lambda **more: ps.pad(**{"field": "lines", "to": 8, "lengths": "length", **more}), "choose another name"),
])  # fmt: skip
def test_a_field_that_does_not_fit_is_named_with_what_runs(data, call, part):
    plan = FIELDS[data]()
    with pytest.raises(ValueError) as raised:
        plan.map(call())
    said = str(raised.value)
    assert part in said
    option = re.search(r"(?:name it by|such as) (\w+)='(\w+)'", said)
    line = re.search(r"(?:[:;] |put )((?:crop|decode)_image\(.*?\)\))", said)
    if option:
        plan = plan.map(call(**{option[1]: option[2]}))
    elif line:
        plan = plan.map(eval("ps." + line[1].replace("crop=", "crop=ps.")))
        if "before" in said:
            plan = plan.map(call())
    assert next(plan.batch(2).loader()) is not None
    assert option or line or data == "lines"


def test_a_device_transform_says_which_fields_there_are():
    with pytest.raises(ValueError, match=re.escape("transform_on_device: the samples have no field 'photo': there are image u8 [8,8,3]")):
        ps.memory(IMAGES).batch(2).transform_on_device(field="photo")


def test_what_makes_samples_one_size_runs():
    for data in ("photo", "several"):
        with pytest.raises(ValueError, match="map them to one size") as raised:
            FIELDS[data]().batch(2).loader()
        line = re.search(r"by ((?:crop|decode)_image\(.*?\)\))", str(raised.value))
        assert line and next(FIELDS[data]().map(eval("ps." + line[1].replace("crop=", "crop=ps."))).batch(2).loader()) is not None
