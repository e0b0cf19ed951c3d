"""tf.data: f32 [N,H,W,3], decode_and_crop_jpeg in a parallel map.

AUTOTUNE for map and prefetch, as in https://www.tensorflow.org/guide/data_performance; order may give way to speed
(deterministic=False). decode_and_crop_jpeg is "much faster" than decoding first
(https://www.tensorflow.org/api_docs/python/tf/io/decode_and_crop_jpeg). tf.image.resize puts out floats.
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from job import AREA, ASPECT, SIZE, Job

REQUIREMENTS = ["tensorflow-cpu"]
DISK_GB = 1.8


def version() -> str:
    return f"TensorFlow {tf.__version__}"


def _options(dataset: tf.data.Dataset, job: Job) -> tf.data.Dataset:
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = job.threads
    options.threading.max_intra_op_parallelism = 1
    return dataset.with_options(options)


def _training_crop(path):
    encoded = tf.io.read_file(path)
    box = tf.zeros([1, 0, 4], tf.float32)
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(encoded),
        box,
        area_range=AREA,
        aspect_ratio_range=ASPECT,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
    return tf.image.random_flip_left_right(tf.image.resize(image, [SIZE, SIZE]))


def epoch(job: Job):
    files = tf.data.Dataset.from_tensor_slices(job.files).shuffle(len(job.files))
    dataset = files.map(_training_crop, num_parallel_calls=tf.data.AUTOTUNE).batch(job.batch)
    dataset = _options(dataset.prefetch(tf.data.AUTOTUNE), job)
    return lambda: sum(batch.shape[0] for batch in dataset)


def outputs(job: Job) -> np.ndarray:
    def one(path: str) -> np.ndarray:
        encoded = tf.io.read_file(path)
        height, width, _ = tf.image.extract_jpeg_shape(encoded).numpy()
        side = round(min(height, width) * SIZE / 256)
        image = tf.image.decode_and_crop_jpeg(
            encoded, [(height - side) // 2, (width - side) // 2, side, side], channels=3
        )
        return np.clip(np.rint(tf.image.resize(image, [SIZE, SIZE]).numpy()), 0, 255).astype(np.uint8)

    return np.stack([one(path) for path in job.files])


def elements(job: Job):
    values = tf.data.Dataset.from_tensor_slices(np.zeros((job.elements, job.element_bytes), np.uint8))
    dataset = _options(values.batch(job.batch).prefetch(tf.data.AUTOTUNE), job)
    return lambda: sum(batch.shape[0] for batch in dataset)
