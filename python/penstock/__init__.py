"""Penstock feeds training data to GPUs.

It reads, shuffles, decodes and batches on the CPU, straight into pinned memory, and copies every
global batch to all devices while they compute:

    import penstock as ps

    train = (ps.image_folder("train").seed(7).shuffle()
             .map(ps.decode_image(crop=ps.random_resized_crop(224), flip=0.5))
             .batch(256).prefetch_to_devices("auto"))
    for step in train.loader():
        x = torch.from_dlpack(step["image"])  # zero copy, ordered on the current stream

Start with Dataset and the functions that return one, then Loader. penstock.sync makes the gradients
of several processes one. penstock.torch and penstock.jax are for these frameworks; they are imported
when you import them.
"""

import atexit as _atexit
from collections.abc import Mapping as _Mapping

from penstock import _calls, _penstock

_calls.install(_penstock)  # before anything is taken from it

from penstock import augment, recipes, sync
from penstock._errors import CudaError, DataError, Error, QueueClosed
from penstock._map import map_function
from penstock._penstock import (
    ArrayField,
    Bucket,
    Buckets,
    Crop,
    Dataset,
    Device,
    DeviceBatch,
    DeviceLoader,
    Epoch,
    Epochs,
    ExampleField,
    Fault,
    FieldSpec,
    ImageView,
    InputContext,
    JpegStats,
    Loader,
    JpegIndex,
    MemoryJpegIndex,
    PackSummary,
    Preparation,
    PrepareReport,
    PrepareRun,
    PrepareShard,
    Queue,
    QueueClient,
    QueueServer,
    QueueServerStats,
    QueueStats,
    RandomErasing,
    RecordInfo,
    RemoteStats,
    Report,
    RowBytes,
    RowMaker,
    RowTask,
    RowTasks,
    SharedJpegIndex,
    TranscodedJpeg,
    SampleId,
    StageTime,
    Stats,
    Step,
    Stream,
    Tensor,
    ThreadBudget,
    Transform,
    WebDatasetField,
    __version__,
    _stop_all,
    all_gpus_or_host,
    arrays,
    augment_image,
    center_crop,
    concatenate,
    cover_crop,
    crop_image,
    decode_image,
    decode_views,
    documents,
    five_crops,
    generator,
    gpu_count,
    host_devices,
    image_folder,
    images,
    letterbox,
    megatron,
    memory,
    mix,
    numa_node,
    pad,
    parse_devices,
    prepare,
    random_crop,
    random_resized_crop,
    transcode_jpeg,
    resize_to,
    scale_jitter,
    synthetic_images,
    ten_crops,
    tfrecord,
    token_files,
    webdataset,
    zip,
)

__all__ = [
    # The plan, and the iterator that runs it.
    "Dataset",
    "Loader",
    "Epochs",
    "Epoch",
    "Report",
    "DeviceLoader",
    "Step",
    "Stream",
    "DeviceBatch",
    "Tensor",
    "Stats",
    "StageTime",
    "RemoteStats",
    "ThreadBudget",
    "InputContext",
    "RowTasks",
    "RowTask",
    "RowMaker",
    "RowBytes",
    # Where data comes from.
    "images",
    "image_folder",
    "webdataset",
    "WebDatasetField",
    "tfrecord",
    "ExampleField",
    "arrays",
    "ArrayField",
    "memory",
    "token_files",
    "megatron",
    "documents",
    "PackSummary",
    "Bucket",
    "Buckets",
    "synthetic_images",
    "Queue",
    "QueueClient",
    "QueueServer",
    "QueueServerStats",
    "QueueStats",
    "generator",
    "mix",
    "concatenate",
    "zip",
    # What a sample goes through.
    "decode_image",
    "decode_views",
    "ImageView",
    "cover_crop",
    "crop_image",
    "augment_image",
    "augment",
    "recipes",
    "pad",
    "random_resized_crop",
    "center_crop",
    "five_crops",
    "ten_crops",
    "resize_to",
    "letterbox",
    "random_crop",
    "scale_jitter",
    "Crop",
    "JpegIndex",
    "MemoryJpegIndex",
    "SharedJpegIndex",
    "JpegStats",
    "transcode_jpeg",
    "TranscodedJpeg",
    "prepare",
    "Preparation",
    "PrepareRun",
    "PrepareShard",
    "PrepareReport",
    "RandomErasing",
    "map_function",
    "Transform",
    # Where it goes.
    "Device",
    "host_devices",
    "parse_devices",
    "gpu_count",
    "numa_node",
    "all_gpus_or_host",
    # The words that all of them use.
    "FieldSpec",
    "RecordInfo",
    "SampleId",
    "Fault",
    "Error",
    "DataError",
    "CudaError",
    "QueueClosed",
    "sync",
    "__version__",
]

_register = getattr(_Mapping, "register")  # which type checkers do not know of
_register(DeviceBatch)
_register(Step)

# Threads that need the interpreter must be gone before it is.
_atexit.register(_stop_all)
