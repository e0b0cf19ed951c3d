# Made by scripts/python-reference with nanobind 3.1. Kept, so that a change shows.
"""
Penstock feeds training data to GPUs. Import penstock, not this module.
"""

from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence
)
import os
import pathlib
from typing import Any, Literal, overload

import numpy


class FieldSpec:
    """
    One named field of a sample.

    Shapes  `shape` is of one sample, without the batch axis; None is an extent that differs
            from sample to sample.
    """

    def __init__(self, name: str, dtype: str, shape: Sequence[int | None] = ()) -> None:
        """
        `dtype` is "u8", "f32" and so on, or numpy's name for it.

        Errors  ValueError  no such dtype, or not a shape
        """

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str:
        """"u8", "f32" and so on."""

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Of one sample."""

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __str__(self) -> str:
        """"image u8 [224,224,3]"."""

    def __repr__(self) -> str: ...

class SampleId:
    """Which sample this is: (source, epoch, number), and which draw of it."""

    @property
    def number(self) -> int:
        """0 to N-1 in its source."""

    @property
    def epoch(self) -> int:
        """Passes over the source before this one."""

    @property
    def source(self) -> int:
        """Which source of the plan."""

    @property
    def draw(self) -> int:
        """
        0, or 1 + the position in the output of the outermost `sample`, or `select` that repeats.
        """

    def __getstate__(self) -> tuple[int, int, int, int]: ...

    def __setstate__(self, arg: tuple[int, int, int, int], /) -> None: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class Fault:
    """What is known about a bad sample: which one, where, and why."""

    @property
    def reason(self) -> str:
        """"premature end of JPEG file", ..."""

    @property
    def file(self) -> str:
        """
        Path, or shard and member; empty where there is no file. As os.fsdecode() makes it.
        """

    @property
    def offset(self) -> int:
        """Byte offset in that file; 0 where it says nothing."""

    @property
    def sample(self) -> SampleId: ...

    @property
    def step(self) -> int: ...

    @property
    def row(self) -> int:
        """Row of the global batch."""

    @property
    def out_of_memory(self) -> bool:
        """
        Whether memory was out, which says nothing of the sample: raised under every policy. So is a MemoryError.
        """

    @property
    def cause(self) -> BaseException | None:
        """What your function raised, if that was it."""

    def __getstate__(self) -> tuple[bytes, bytes, int, SampleId, int, int, bool, bool]: ...

    def __setstate__(self, arg: tuple[bytes, bytes, int, SampleId, int, int, bool, bool], /) -> None: ...

    def __str__(self) -> str:
        """
        "sample 17 (epoch 0), cats/7.jpg at byte 512: premature end of JPEG file".
        """

    def __repr__(self) -> str: ...

class Device:
    """
    The name of a place that batches go to: host:i or cuda:i.

    Host devices are real devices: a program for four GPUs runs on host:0 to host:3.
    """

    def __init__(self, name: str) -> None:
        """
        "host:0", "cuda:1"; "cuda" alone is cuda:0.

        Errors  ValueError  anything else
        """

    @property
    def kind(self) -> Literal['host', 'cuda']: ...

    @property
    def index(self) -> int: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

def host_devices(count: int) -> list[Device]:
    """host:0 to host:count-1."""

def parse_devices(spec: str) -> list[Device]:
    """
    "auto" (every GPU, or host:0), "host:4" (four host devices), "cuda:0,1".

    Errors  ValueError  not such a text
    """

def gpu_count() -> int:
    """
    GPUs that can be used here; 0 without a driver or in a build without CUDA.

    Errors  CudaError  there is a driver, and it does not work; says why
    """

def numa_node(device: Device) -> int | None:
    """
    The NUMA node whose memory is nearest to a GPU; None for a host device, and where the
    machine has one node or does not say.
    """

def all_gpus_or_host() -> list[Device]:
    """
    Every GPU there is, or host:0. Where torchrun, mpirun or srun started several processes on
    this machine, this one's share of the GPUs.

    Errors  Error  the launchers' variables contradict each other
    """

class InputContext:
    """
    Which of the processes that read the same dataset this one is; as tf.distribute.InputContext.
    """

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 0) -> None:
        """
        Options
          num_input_pipelines   processes that read the dataset
          input_pipeline_id     which of them this one is, from 0
          num_replicas_in_sync  devices of all processes; 0: num_input_pipelines times this process's devices
        """

    @property
    def num_input_pipelines(self) -> int:
        """processes that read the dataset"""

    @property
    def input_pipeline_id(self) -> int:
        """which of them this one is, from 0"""

    @property
    def num_replicas_in_sync(self) -> int:
        """
        devices of all processes; 0: num_input_pipelines times this process's devices
        """

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __repr__(self) -> str: ...

    @staticmethod
    def from_environment() -> InputContext:
        """
        As torchrun, mpirun or srun started this process; one pipeline where none of them did.

        Errors   Error  the launchers' variables contradict each other
        """

    def per_replica_batch_size(self, global_batch: int) -> int:
        """
        The rows that each replica gets of a global batch.

        Errors   ValueError  global_batch is not divisible by num_replicas_in_sync
        """

class ThreadBudget:
    """
    Cores that several loaders share. Give the same one to several loaders of a process
    (loader(thread_budget=...)) and no more than `threads` of their threads work at a time, whichever of them have
    something to do: a training and a validation loader both get all cores while the other's ring is full, and
    never more. Without one, each loader works with its own threads.

    Threads  any number.
    """

    def __init__(self, threads: int) -> None:
        """Errors   ValueError  threads < 1"""

    @property
    def threads(self) -> int: ...

class Crop:
    """How to choose a region of an image, and the size it is resized to."""

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of what it makes, in pixels."""

    def __repr__(self) -> str: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

def random_resized_crop(size: int | tuple[int, int], *, scale: float | tuple[float, float] = (0.08, 1.0), ratio: float | tuple[float, float] = (0.75, 1.3333333333333333)) -> Crop:
    """
    A random part of the image, resized: the crop of training.

    Options
      size   pixels: one number for a square, or (height, width)
      scale  the region's fraction of the image's area; a number, or (low, high) to draw from
      ratio  the region's width over its height; a number, or (low, high) to draw from

    Errors   ValueError  a size below 1, or a range that is empty or not positive
    Source   torchvision's RandomResizedCrop: ten attempts with an area uniform in `scale` and a ratio whose
             logarithm is uniform in that of `ratio`, then the largest centred crop that fits.
    """

def center_crop(size: int | tuple[int, int], *, resize: int = 256) -> Crop:
    """
    The middle of the image after resizing its shorter side to `resize`: the crop of validation. Sides and offsets
    of the resized image are whole pixels, so width and height may be scaled a little differently. This is one
    region and one resize; nothing outside the crop is decoded.

    Options
      size    pixels: one number for a square, or (height, width)
      resize  pixels to which the shorter side of the whole image is resized

    Errors   ValueError  a size below 1, or one larger than `resize`
    Source   torchvision's Resize followed by CenterCrop, with their sizes and offsets: the longer side is cut to
             an integer, an offset of a half is rounded to the even number.
    """

def five_crops(size: int | tuple[int, int], *, resize: int = 256) -> Crop:
    """
    The four corners and the middle of the image after resizing its shorter side to `resize`, for testing: upper
    left, upper right, lower left, lower right, middle. Makes a field [5,H,W,channels].

    Options
      size    pixels: one number for a square, or (height, width)
      resize  pixels to which the shorter side of the whole image is resized

    Errors   ValueError  a size below 1, or one larger than `resize`
    Source   torchvision's Resize followed by FiveCrop, with their sizes and offsets.
    """

def ten_crops(size: int | tuple[int, int], *, resize: int = 256) -> Crop:
    """
    The five of five_crops, followed by the same five of the mirrored image: [10,H,W,channels].

    Options
      size    pixels: one number for a square, or (height, width)
      resize  pixels to which the shorter side of the whole image is resized

    Errors   ValueError  as five_crops
    Source   torchvision's Resize followed by TenCrop, without its vertical_flip.
    """

def resize_to(height: int, width: int) -> Crop:
    """
    The whole image, stretched to `height` and `width`, in pixels.

    Errors   ValueError  a size below 1
    """

def letterbox(size: int | tuple[int, int], *, fill: int | tuple[int, int, int] = 114) -> Crop:
    """
    The whole image as large as it fits with its aspect kept, in the middle; the rest is filled. Small images are
    enlarged.

    Options
      size  pixels: one number for a square, or (height, width)
      fill  the colour beside the image, by default YOLO's grey; one level, or (red, green, blue), from 0 to 255

    Errors   ValueError  a size below 1, or a level outside [0, 255]
    Source   YOLO's letterbox (ultralytics' LetterBox): sides are rounded, a half to the even number, and are 1 at
             least; an odd row or column of fill stands below or on the right.
    """

def cover_crop(size: int | tuple[int, int], *, position: Literal['center', 'random'] = 'center') -> Crop:
    """
    The image resized, with its aspect kept, so that it just covers the sample; what is too much in one direction
    is cut off, equally on both sides or at a random position. Small images are enlarged. One side of the resized
    image is the sample's; the other is the exact quotient, cut to an integer, so it may be scaled a little
    differently. Nothing outside the crop is decoded.

    Options
      size      pixels: one number for a square, or (height, width)
      position  position of the sample in the resized image: "center"; "random" (all whole pixels equally likely)

    Errors   ValueError  a size below 1
    Source   torchvision's Resize to those two sides, followed by CenterCrop (an offset of a half is rounded to
             the even number) or RandomCrop. Diffusion models are trained on such crops: mosaicml's diffusion has
             this one, at a random position, for its aspect buckets (RandomCropAspectRatioTransform).
    """

def random_crop(size: int | tuple[int, int], *, padding: int = 0, fill: int | tuple[int, int, int] = 0, pad_if_needed: bool = False) -> Crop:
    """
    A random part of the image as it is, not resized, after padding on all sides: the crop of CIFAR
    (`random_crop(32, padding=4)`). An image that is smaller than the crop even so is a fault.

    Options
      size           pixels: one number for a square, or (height, width)
      padding        pixels of `fill` on each side of the image, fewer than the crop's height and width
      fill           the colour of the padding; one level, or (red, green, blue), from 0 to 255
      pad_if_needed  whether images smaller than the crop are padded to its size, equally on both sides

    Errors   ValueError  a size below 1; a padding below 0, or of the crop's height or width and more; a level
                         outside [0, 255]
    Source   torchvision's RandomCrop.
    """

def scale_jitter(size: int | tuple[int, int], *, scale: float | tuple[float, float] = (0.1, 2.0), fill: int | tuple[int, int, int] = 0) -> Crop:
    """
    Large-scale jitter: the image at a random size with its aspect kept; a random part of that in the directions
    in which it is larger than the sample. It lies in the upper left corner, and the rest is filled.

    Options
      size   pixels: one number for a square, or (height, width)
      scale  the image's size, as a multiple of the largest at which the whole image fits; a number, or (low,
             high) to draw from
      fill   the colour beside the image; one level, or (red, green, blue), from 0 to 255

    Errors   ValueError  a size below 1; a range that is empty or not positive; a level outside [0, 255]
    Source   Ghiasi et al., Simple Copy-Paste (CVPR 2021), as torchvision's detection reference has it:
             ScaleJitter and FixedSizeCrop.
    """

class JpegIndex:
    """An index of JPEGs: MemoryJpegIndex or SharedJpegIndex."""

    def __bool__(self) -> bool: ...

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Bytes that the indices take, in memory or in the file."""

    def load_bytes(self, made: bytes) -> int:
        """
        Adds what MemoryJpegIndex.to_bytes() made; returns how many. Parts that are damaged are left out; `name` is
        for messages.

        Errors   Error  the bytes are of another kind
        """

class MemoryJpegIndex(JpegIndex):
    """
    Keeps indices in memory, as many as fit: filled when JPEGs are first decoded, so that later only the crop is
    decoded, and kept in a file by save(). Neither the pixels nor the faults depend on it.

    Threads  any number
    """

    def __init__(self, max_bytes: int = 1073741824) -> None:
        """
        Options
          max_bytes  bytes that the indices may take; once full, it takes no more
        """

    def load(self, file: str | os.PathLike[str]) -> int:
        """
        Adds the indices of a file that MemoryJpegIndex.save() wrote, or of all files of a folder that are called
        *.jpegindex, such as penstock-prepare writes beside its shards; each may be in a bucket: s3://bucket/key,
        s3://bucket/prefix. Returns how many were added. Parts that are damaged are left out.

        Errors   Error  there is no such file, none in the folder, it cannot be read, or is of another kind
        """

    def save(self, file: str | os.PathLike[str]) -> None:
        """
        Writes all indices, each with its key and a checksum, under another name, then renames it.

        Errors   Error  the file cannot be written, or is in a bucket
        """

    def to_bytes(self) -> bytes:
        """What save() writes."""

class SharedJpegIndex(JpegIndex):
    """
    Keeps indices in a file that the processes of a machine map at the same time: with a process for each GPU, an
    image that one of them has decoded is known to all in the next epoch, whoever gets it then. The file stays for
    the next run.

    A process may be killed at any moment: what it was writing is not found, and takes room. Every index has a
    checksum, and is checked against the image that it is for. /dev/shm is memory and goes with the machine; a
    local disk keeps the file longer; over a network file system processes do not see each other's writes.

    Threads  any number, in any number of processes
    """

    def __init__(self, file: str | os.PathLike[str], max_bytes: int = 1073741824) -> None:
        """
        Opens the file, or makes it. It takes room as it fills, up to `max_bytes`; one that is there keeps its own
        limit.

        Units    max_bytes: about 400 a photograph; at least 64 KiB
        Errors   Error       the file cannot be made or mapped, or is of another kind, or of another version; or is in
                             a bucket; is another user's, or others may write to it
                 ValueError  max_bytes is too small
        """

class JpegStats:
    """Counts which decoder took the JPEGs. For decode_image(stats=...)."""

    def __init__(self) -> None: ...

    def __repr__(self) -> str: ...

    def counts(self) -> dict[str, int]:
        """
        "own": by Penstock's own decoder, "indexed": those of them with an index; "tolerated", if any:
        those with warnings; "on_gpu", if any: by GPUs, beside these; then by libjpeg-turbo, one entry per reason that occurred.
        """

class Transform:
    """One record becomes one sample. For Dataset.map."""

    def __repr__(self) -> str: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

def pad(field: str, to: int, *, value: float = 0.0, truncate: bool = False, lengths: str = '') -> Transform:
    """
    Makes a field of shape [?, ...] one of shape [to, ...]: tokens of texts, steps of trajectories, boxes of
    images.

    Options
      field     a field of shape [?, ...]: only its first extent differs from record to record
      to        that extent afterwards
      value     the value of the elements that are added; f16 and bf16 take 0 only
      truncate  whether longer records are cut, or are faults
      lengths   name of one more field, i64 [], of the length before padding, at most `to`; without a name there
                is no such field

    Errors   ValueError  `to` below 1; in Dataset.map: no such field, or another shape; a value that its type has
                         not; a name of `lengths` that is taken
    """

def decode_image(*, crop: Crop, field: str = 'image', flip: float = 0.0, decoder: Literal['fast', 'reference', 'libjpeg'] = 'reference', filter: Literal['bilinear', 'bicubic', 'pillow_bilinear', 'pillow_bicubic', 'nearest'] = 'bilinear', scaled: bool = False, exif: bool = True, background: int | tuple[int, int, int] | None = None, channels: int = 3, dtype: str = 'u8', tolerant: bool = False, max_megapixels: float = 200.0, geometry: str = '', masks: str | Sequence[str] = (), mask_fill: int = 255, mask_dtype: str = 'u8', index: JpegIndex | None = None, stats: JpegStats | None = None) -> Transform:
    """
    Decodes the part of an image that a crop needs, and resizes it into the sample's place.

    The format is recognised by its signature: JPEG (baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK),
    PNG and WebP (still images). Alpha is dropped, or the image is composited over `background` before the resize:
    each level is (level * alpha + background * (255 - alpha)) / 255, rounded, as Pillow's alpha_composite. Colour
    profiles, and orientations outside JPEG, are ignored. The pixels of a JPEG are, bit for bit, those that
    libjpeg-turbo decodes of the whole image with accurate DCT (at the same scale; by default with smooth chroma,
    its fancy upsampling, which is what Pillow shows too); JPEGs that Penstock's own decoder does not take
    (progressive, a scan for each component, CMYK and the like) go to libjpeg-turbo. The resize is an antialiased
    filter in integers, so equal bytes in give equal bytes out on every CPU; but for damaged JPEGs whose numbers
    overflow, of which libjpeg-turbo makes other pixels on ARM than on x86.

    A fault: an image of another kind, a truncated or corrupt one (whatever libjpeg-turbo has an error or, unless
    `tolerant`, a warning for; a JPEG's data past the region's last rows are not looked at), one over
    max_megapixels, or a JPEG of more than 100 scans; an image smaller than a random_crop without pad_if_needed.
    Every decoder finds the same faults.

    Masks are resized as by Pillow's NEAREST, whatever the image's filter. A PNG's numbers are taken as they are
    stored, entries of its palette or grey levels, also those of 1, 2 and 4 bits. A mask that is no such PNG, or
    has another size than the image, is a fault.

    Options
      crop            the part of the image, and the size of the sample
      field           the field of the encoded bytes, which the decoded crop replaces
      flip            probability of mirroring left to right
      decoder         what decodes JPEGs: "fast" (Penstock's own, which decodes little but the crop, and repeats
                      chroma); "reference" (the same with chroma smoothed, the default of libjpeg and Pillow);
                      "libjpeg" (libjpeg-turbo alone, for comparison, with the pixels of "fast")
      filter          what resizes, antialiased where an image shrinks: "bilinear" (within one level of Pillow's;
                      it also reads pixels beside the crop); "bicubic" (sharper, Keys' cubic with a = -1/2, as
                      Pillow's BICUBIC; it also reads pixels beside the crop); "pillow_bilinear" (the bytes of
                      torchvision's transforms on Pillow's images (before Pillow 13), slower); "pillow_bicubic"
                      (likewise); "nearest" (Pillow's NEAREST: each pixel is one pixel of the image, so no two are
                      mixed)
      scaled          whether a JPEG is decoded at 1/2, 1/4 or 1/8 of its size where the region is then still at
                      least as large as the sample in both directions: for photographs of many megapixels; the
                      pixels are nearly the same
      exif            whether JPEGs are turned upright as their EXIF orientation says
      background      the colour over which transparent PNGs and WebPs are composited; without one, their alpha is
                      dropped
      channels        3 for RGB, or 1 for grey: (19595 red + 38470 green + 7471 blue + 32768) / 65536 of the
                      crop's pixels, cut to an integer, as Pillow's convert("L"); a crop's fill then has one level
      dtype           u8, or u16 for PNGs of 16 bits a level, grey or RGB, with all their bits (depth, medical
                      images); other images are then faults, colours are faults for 1 channel, a grey level is
                      repeated for 3, and a level f of a fill is 257 f
      tolerant        whether JPEGs that libjpeg-turbo only warns about are decoded as Pillow decodes them (bytes
                      between segments, damaged data; what is missing before a marker becomes grey) and counted by
                      `stats`, or are faults; a file that ends too early is always a fault
      max_megapixels  an image whose header says that it is larger is a fault
      geometry        name of one more field, i32 [8]: x, y, width, height of what the whole sample covers of the
                      upright image, fill included, rounded outwards, so that it may reach beyond the image;
                      flipped (0 or 1); width and height of the upright image; EXIF orientation (1 to 8); without
                      a name there is no such field
      masks           fields that are cropped and flipped with the image and of which no two values are mixed: the
                      classes of its pixels; each is a PNG with a palette or grey levels, or decoded, and as large
                      as the upright image
      mask_fill       the value of masks beside the image; most losses ignore 255
      mask_dtype      type of masks that are PNGs: u16, i32 or larger for values of 16 bits (instances, say);
                      torch's losses take i64
      index           an index that is filled when a JPEG is first decoded, or loaded from what penstock-prepare
                      wrote, so that later only the crop is decoded; neither the pixels nor the faults depend on
                      it
      stats           counts which decoder decoded the JPEGs

    Shapes   in: `field` u8 [?], each mask u8 [?], or decoded: integers [H,W] or [H,W,1]; out: `field` u8 or u16
             [H,W,channels], `geometry` i32 [8] if asked for, each mask [H,W] of mask_dtype or, if decoded, its
             type. With five_crops or ten_crops, image and geometry have a first dimension of as many.
    Threads  any number at the same time. A thread keeps at most a few MiB of scratch memory between images; while
             it works, a baseline JPEG needs its encoded size and a band of rows, other images the whole of them
             (4 bytes a pixel; 8 for a progressive JPEG).
    Errors   ValueError  an empty crop or field name, flip outside [0,1], a limit that is not positive, two fields
                         of one name, masks with several crops, channels other than 1 and 3, a fill of several
                         levels for 1, a dtype other than u8 and u16, pillow_bicubic or a background with u16, or
                         a level of the background outside [0,255]; in Dataset.map: another type or shape, or a
                         mask whose type has no `mask_fill`
    Source   the filter is Pillow's resize(box=region, resample=BILINEAR), to within one level. Of 16 bits it is
             computed in doubles and rounded once, and pillow_bilinear gives the levels of Pillow's "I;16".
    """

class ImageView:
    """
    One field that is made of an image: a crop of it, or several crops that are drawn alike.
    """

    def __init__(self, crop: Crop, *, count: int = 0, flip: float = 0.0, filter: Literal['bilinear', 'bicubic', 'pillow_bilinear', 'pillow_bicubic', 'nearest'] = 'bilinear', geometry: str = '') -> None:
        """
        Options
          crop      the part of the image, and the size of the sample
          count     crops in the field, which is its first dimension; 0 for one crop without that dimension, or for
                    those of five_crops and ten_crops
          flip      probability of mirroring left to right, drawn for each crop
          filter    what resizes, antialiased where an image shrinks: "bilinear" (within one level of Pillow's; it
                    also reads pixels beside the crop); "bicubic" (sharper, Keys' cubic with a = -1/2, as Pillow's
                    BICUBIC; it also reads pixels beside the crop); "pillow_bilinear" (the bytes of torchvision's
                    transforms on Pillow's images (before Pillow 13), slower); "pillow_bicubic" (likewise); "nearest"
                    (Pillow's NEAREST: each pixel is one pixel of the image, so no two are mixed)
          geometry  name of one more field, as geometry of decode_image; i32 [count,8], or [8]
        """

    @property
    def crop(self) -> Crop:
        """the part of the image, and the size of the sample"""

    @property
    def count(self) -> int:
        """
        crops in the field, which is its first dimension; 0 for one crop without that dimension, or for those of five_crops and ten_crops
        """

    @property
    def flip(self) -> float:
        """probability of mirroring left to right, drawn for each crop"""

    @property
    def filter(self) -> Literal['bilinear', 'bicubic', 'pillow_bilinear', 'pillow_bicubic', 'nearest']:
        """
        what resizes, antialiased where an image shrinks: "bilinear" (within one level of Pillow's; it also reads pixels beside the crop); "bicubic" (sharper, Keys' cubic with a = -1/2, as Pillow's BICUBIC; it also reads pixels beside the crop); "pillow_bilinear" (the bytes of torchvision's transforms on Pillow's images (before Pillow 13), slower); "pillow_bicubic" (likewise); "nearest" (Pillow's NEAREST: each pixel is one pixel of the image, so no two are mixed)
        """

    @property
    def geometry(self) -> str:
        """
        name of one more field, as geometry of decode_image; i32 [count,8], or [8]
        """

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __repr__(self) -> str: ...

def decode_views(views: Mapping[str, ImageView], *, field: str = 'image', decoder: Literal['fast', 'reference', 'libjpeg'] = 'reference', scaled: bool = False, exif: bool = True, background: int | tuple[int, int, int] | None = None, channels: int = 3, dtype: str = 'u8', tolerant: bool = False, max_megapixels: float = 200.0, index: JpegIndex | None = None, stats: JpegStats | None = None) -> Transform:
    """
    Makes several crops of one image: those of SimCLR or DINO, or a training and an evaluation crop side by side.
    The image is decoded once, row by row, as far as its crops reach; the crops are resized as the rows arrive.

    Each crop draws from a sequence of random numbers of its own: crop i of the view at position k has number 256
    k + i. So a view that is added at the end, or a larger count, changes no other crop, and the first crop is the
    one that decode_image would make.

    The pixels are those of decode_image, bit for bit, for the same region (with `scaled`, at the same scale), and
    the same images are faults; of a JPEG, data below the last of the crops are not looked at.

    Options
      views           the fields that replace it, in order
      field           the field of the encoded bytes
      decoder         what decodes JPEGs: "fast" (Penstock's own, which decodes little but the crop, and repeats
                      chroma); "reference" (the same with chroma smoothed, the default of libjpeg and Pillow);
                      "libjpeg" (libjpeg-turbo alone, for comparison, with the pixels of "fast")
      scaled          whether JPEGs are decoded at the largest of the scales that suit all crops
      exif            whether JPEGs are turned upright as their EXIF orientation says
      background      the colour over which transparent PNGs and WebPs are composited; without one, their alpha is
                      dropped
      channels        3 for RGB, or 1 for grey: (19595 red + 38470 green + 7471 blue + 32768) / 65536 of the
                      crop's pixels, cut to an integer, as Pillow's convert("L"); a crop's fill then has one level
      dtype           u8, or u16 for PNGs of 16 bits a level, grey or RGB, with all their bits (depth, medical
                      images); other images are then faults, colours are faults for 1 channel, a grey level is
                      repeated for 3, and a level f of a fill is 257 f
      tolerant        whether JPEGs that libjpeg-turbo only warns about are decoded as Pillow decodes them (bytes
                      between segments, damaged data; what is missing before a marker becomes grey) and counted by
                      `stats`, or are faults; a file that ends too early is always a fault
      max_megapixels  an image whose header says that it is larger is a fault
      index           an index that is filled when a JPEG is first decoded, or loaded from what penstock-prepare
                      wrote, so that later only the crop is decoded; neither the pixels nor the faults depend on
                      it
      stats           counts which decoder decoded the JPEGs

    Shapes   in: `field` u8 [?]; out, for each view: `dtype` [count,H,W,channels] or [H,W,channels], and its
             geometry, i32 [count,8] or [8], if asked for.
    Threads  any number at the same time. As decode_image, and for each crop some rows of scratch memory.
    Errors   ValueError  no views or more than 256, or 1,024 crops; an empty crop or name, or a name twice; a
                         count outside [0,256]; flip outside [0,1]; a limit that is not positive; a level of the
                         background outside [0,255]; as decode_image for channels and dtype
    """

def crop_image(*, crop: Crop, field: str = 'image', flip: float = 0.0, filter: Literal['bilinear', 'bicubic', 'pillow_bilinear', 'pillow_bicubic', 'nearest'] = 'bilinear', geometry: str = '', masks: str | Sequence[str] = (), mask_fill: int = 255, mask_dtype: str = 'u8') -> Transform:
    """
    decode_image for images that are decoded already, such as arrays of CIFAR's: the same crops, the same random
    numbers, the same pixels and the same masks.

    A fault: an image without pixels, or smaller than a random_crop without pad_if_needed.

    Options
      crop        the part of the image, and the size of the sample
      field       the field of the pixels, which the crop replaces
      flip        probability of mirroring left to right
      filter      what resizes, antialiased where an image shrinks: "bilinear" (within one level of Pillow's; it
                  also reads pixels beside the crop); "bicubic" (sharper, Keys' cubic with a = -1/2, as Pillow's
                  BICUBIC; it also reads pixels beside the crop); "pillow_bilinear" (the bytes of torchvision's
                  transforms on Pillow's images (before Pillow 13), slower); "pillow_bicubic" (likewise);
                  "nearest" (Pillow's NEAREST: each pixel is one pixel of the image, so no two are mixed)
      geometry    name of one more field, i32 [8]: x, y, width, height of what the whole sample covers of the
                  upright image, fill included, rounded outwards, so that it may reach beyond the image; flipped
                  (0 or 1); width and height of the upright image; EXIF orientation (1 to 8); without a name there
                  is no such field
      masks       fields that are cropped and flipped with the image and of which no two values are mixed: the
                  classes of its pixels; each is a PNG with a palette or grey levels, or decoded, and as large as
                  the upright image
      mask_fill   the value of masks beside the image; most losses ignore 255
      mask_dtype  type of masks that are PNGs: u16, i32 or larger for values of 16 bits (instances, say); torch's
                  losses take i64

    Shapes   in: `field` u8 or u16 [H,W,C], with C 1 or 3; H and W may differ from record to record. out: `field`
             [H,W,C] of the crop's size and that type, `geometry` i32 [8] if asked for, and masks as of
             decode_image; with five_crops or ten_crops a first dimension of as many.
    Threads  any number at the same time. While it works, a thread needs four bytes for each pixel that the crop
             reaches.
    Errors   ValueError  an empty crop or field name, flip outside [0,1], or two fields of one name; in
                         Dataset.map: another type or shape, a fill of several levels for images of one channel,
                         or a mask whose type has no `mask_fill`; pillow_bicubic for u16
    """

def augment_image(operations: Sequence[Augmentation], *, field: str = 'image', masks: str | Sequence[str] = (), mask_fill: int = 255) -> Transform:
    """
    Does these operations to an image, or to each of several views of one: a view draws its own numbers, and the
    first one draws those of a single image.

    Options
      operations  what is done to it, one after another
      field       the field of the image, or of several views of one
      masks       fields that are moved with the image (by flips, rotations, shears, translations, affine and
                  perspective, also those of policies) and otherwise stay as they are: the classes of its pixels;
                  the nearest pixel is taken, whatever the operation's interpolation
      mask_fill   the value of masks beside the image; most losses ignore 255

    Shapes   in and out: `field` u8 [H,W,C] or [views,H,W,C], of 1 or 3 channels and at most 32767 pixels a side;
             masks u8 [H,W]
    Errors   ValueError  no field name, or one twice; a mask_fill outside [0,255]; masks with operations that may
                         mix images (aug_mix); in Dataset.map: no such field, or one of another type or shape;
                         masks for several views
    """

class TranscodedJpeg:
    """A JPEG that decodes faster, or why the file was kept unchanged."""

    @property
    def bytes(self) -> bytes:
        """the whole file; the given one if it was kept unchanged"""

    @property
    def kept(self) -> str:
        """why it was kept unchanged; empty if it was transcoded"""

    @property
    def interval(self) -> int:
        """MCUs between two restart markers"""

    @property
    def mcus_in_row(self) -> int: ...

def transcode_jpeg(jpeg: bytes, *, interval: int = 8, max_growth: float = 0.01) -> TranscodedJpeg:
    """
    Transcodes a JPEG losslessly, with restart markers that divide each row of MCUs evenly and with Huffman tables
    made for it: a decoder can then begin in the middle of a row, and decode several segments in parallel.
    Progressive files become baseline. All markers (EXIF, colour profile, comments) are kept.

    Lossless: the result is read again, and every coefficient, quantisation table and sampling factor compared.
    Any JPEG reader reads it, to the same pixels.

    A file is kept unchanged if it is arithmetic-coded, is not of 8 bits, or would grow too much.

    Options
      interval    MCUs between two restart markers, as near to this as a divisor of the MCU row from 4 on can be
      max_growth  a result that is larger than the file by more than this fraction of it is tried with longer
                  intervals, then given up; below 0, it has to be smaller

    Units    memory for the coefficients, 2 bytes for each sample of each component, twice.
    Threads  any number.
    Errors   ValueError  no JPEG, or one that libjpeg finds an error or has a warning in
             ValueError  an interval below 1, or a max_growth that is no number
    Source   what jpegtran -restart -optimize does, by libjpeg's coefficient interface
    """

class JpegBatchReport:
    """What became of a batch's images."""

    @property
    def on_gpu(self) -> int:
        """images that the GPU decodes"""

    @property
    def on_host(self) -> int:
        """
        images that the CPU has decoded: not in the index yet; progressive, and what else Penstock's own decoder does not take; damaged; too large
        """

    @property
    def faults(self) -> list[Fault | None]:
        """
        what is wrong with each image, or none; the pixels of a bad one are zeros
        """

    def __repr__(self) -> str: ...

class JpegBatchDecoder:
    """
    Decodes JPEGs on a GPU, for loaders of your own; Penstock's has loader(decode_on_gpu=True).

    The CPU finds the parts of a scan that the crop needs, and copies them; the GPU does the rest: Huffman codes, the
    inverse DCT, colours, the resize. The pixels are, bit for bit, those that the CPU makes, so it does not matter who
    decodes an image.

        decoder = penstock.JpegBatchDecoder((224, 224), index=index)
        pixels = torch.empty(len(files), 224, 224, 3, dtype=torch.uint8, device="cuda")
        report = decoder.decode([file.read_bytes() for file in files], pixels)

    Threads  any number; calls wait for each other. Without the GIL; images that the CPU decodes go over all cores.
    """

    def __init__(self, size: int | tuple[int, int], *, device: str | Device = 'cuda:0', filter: Literal['bilinear', 'bicubic', 'pillow_bilinear', 'pillow_bicubic', 'nearest'] = 'bilinear', chroma: Literal['repeated', 'smooth'] = 'smooth', index: JpegIndex | None = None, scratch_bytes: int = 1073741824) -> None:
        """
        Options
          size           of every image of a batch; pixels: one number for a square, or (height, width)
          device         a CUDA device, which decodes and has the batches
          filter         "bilinear" or "bicubic": "bilinear" (within one level of Pillow's; it also reads pixels
                         beside the crop); "bicubic" (sharper, Keys' cubic with a = -1/2, as Pillow's BICUBIC; it also
                         reads pixels beside the crop); "pillow_bilinear" (the bytes of torchvision's transforms on
                         Pillow's images (before Pillow 13), slower); "pillow_bicubic" (likewise); "nearest" (Pillow's
                         NEAREST: each pixel is one pixel of the image, so no two are mixed)
          chroma         how subsampled chroma is upsampled
          index          where decoding can begin: loaded from what penstock-prepare wrote, or filled as images are
                         first seen, which the CPU decodes; by default an empty one
          scratch_bytes  bytes of the GPU's memory for the pixels of the crops before they are resized: 8 to 13 bytes
                         each. Twice that is taken at most, and for each image of a batch its packed data and up to 24
                         KiB of tables. Batches that need more go in parts; an image that needs more by itself is
                         decoded by the CPU

        Errors   ValueError  no cuda device, an empty size, another filter than bilinear and bicubic, no index
                 CudaError   no such device
        """

    def decode(self, images: Sequence[Any], out: Any, *, boxes: Sequence[tuple[float, float, float, float] | None] | None = None, mirror: Sequence[bool] | None = None, stream: int | None = None) -> JpegBatchReport:
        """
        Queues the decoding of a batch into `out`. The images' bytes are not needed afterwards.

        `images`: bytes, or what else has a buffer, such as a memoryview or an array. `boxes`: (x, y, width, height) of each image
        as it is stored, in its pixels; None: all of it. `mirror`: left to right. An image with a fault gives zeros.

        Shapes  out uint8 [images, height, width, 3], contiguous, on the decoder's device
        Stream  `stream`, a number as in DLPack; else torch's current one. The batch is in `out` once what was queued there has run.
                The CPU waits for nothing but the memory of the batch before the last one (of the last one, where the CPU
                decoded images of both)
        Errors  ValueError  a box that is not within its image; another `out`; nothing may be expected of it then
                TypeError   an image without a buffer
                Error       in an earlier batch, what the index says of an image was wrong
                CudaError
        """

    def wait(self) -> None:
        """
        Waits for all batches.

        Errors   Error, CudaError  as decode()
        """

class Augmentation:
    """
    One operation on an image with the ranges that it draws from, or a choice of operations. A value; for
    augment_image().

    Each operation is defined in integers and gives the same levels on every machine. The definitions are those of
    torchvision.transforms.v2.functional for u8 images, within one level. Grey images stay as they are where an
    operation needs colours.
    """

    def __repr__(self) -> str: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def to_json(self) -> str:
        """{"brightness":{"factor":[0.6,1.4]}}: what plans hold."""

    @staticmethod
    def from_json(json: str) -> Augmentation:
        """
        What to_json() wrote.

        Errors  Error       no such operation, or a field that is missing, unknown or of another type
                ValueError  a number out of range
        """

def brightness(factor: float | tuple[float, float]) -> Augmentation:
    """
    Multiplies levels by `factor`; 0 is black. Factors of all operations are from 0 to 8, and 1 leaves an image as
    it is.

    Options
      factor  a number, or (low, high) to draw from

    Errors   ValueError  a range that is empty or goes beyond
    Source   torchvision's adjust_brightness
    """

def contrast(factor: float | tuple[float, float]) -> Augmentation:
    """
    Blends with the mean of the image's luma, by `factor`.

    Options
      factor  a number, or (low, high) to draw from

    Errors   as brightness
    Source   torchvision's adjust_contrast
    """

def saturation(factor: float | tuple[float, float]) -> Augmentation:
    """
    Blends with the image's luma, by `factor`; 0 is grey.

    Options
      factor  a number, or (low, high) to draw from

    Errors   as brightness
    Source   torchvision's adjust_saturation
    """

def hue(turn: float | tuple[float, float]) -> Augmentation:
    """
    Turns hues by `turn`, a fraction of the circle from -0.5 to 0.5.

    Options
      turn  a number, or (low, high) to draw from

    Errors   ValueError  a range that is empty or goes beyond
    Source   torchvision's adjust_hue
    """

def sharpness(factor: float | tuple[float, float]) -> Augmentation:
    """
    Blends with a smoothed image, by `factor`: below 1 it blurs, above 1 it sharpens. The outermost pixels stay.

    Options
      factor  a number, or (low, high) to draw from

    Errors   as brightness
    Source   torchvision's adjust_sharpness
    """

def color_jitter(brightness: float | tuple[float, float] = (1.0, 1.0), contrast: float | tuple[float, float] = (1.0, 1.0), saturation: float | tuple[float, float] = (1.0, 1.0), hue: float | tuple[float, float] = (0.0, 0.0)) -> Augmentation:
    """
    Brightness, contrast, saturation and hue in a random order. Those that change nothing are left out.

    Options
      brightness  as of brightness(); a number s, which is (max(0, 1 - s), 1 + s), or (low, high) to draw from
      contrast    as of contrast(); a number s, which is (max(0, 1 - s), 1 + s), or (low, high) to draw from
      saturation  as of saturation(); a number s, which is (max(0, 1 - s), 1 + s), or (low, high) to draw from
      hue         as of hue(); a number s, which is (-s, s), or (low, high) to draw from

    Errors   ValueError  as each of them
    Source   torchvision's ColorJitter
    """

def grayscale() -> Augmentation:
    """
    ITU-R 601-2 luma in all three channels.

    Source   torchvision's rgb_to_grayscale
    """

def solarize(threshold: int = 128) -> Augmentation:
    """
    Inverts levels from `threshold` on.

    Errors   ValueError  a threshold outside 0 to 256
    Source   torchvision's solarize
    """

def posterize(bits: int) -> Augmentation:
    """
    Keeps the highest `bits` bits of a level.

    Errors   ValueError  bits outside 0 to 8
    Source   torchvision's posterize
    """

def equalize() -> Augmentation:
    """
    Makes levels equally frequent, channel by channel.

    Source   torchvision's equalize, which is Pillow's
    """

def autocontrast() -> Augmentation:
    """
    Stretches each channel over all levels.

    Source   torchvision's autocontrast
    """

def invert() -> Augmentation:
    """Replaces each level by 255 - level."""

def gaussian_blur(kernel_size: int, sigma: float | tuple[float, float] = (0.1, 2.0)) -> Augmentation:
    """
    Blurs by a Gaussian of `kernel_size` times `kernel_size` pixels. Beyond its edges an image is mirrored.

    Options
      sigma  a number, or (low, high) to draw from

    Units    `sigma` in pixels
    Errors   ValueError  a kernel size that is even or outside 1 to 63; a sigma that is not above 0, or above 100
    Source   torchvision's gaussian_blur
    """

def flip(probability: float = 0.5) -> Augmentation:
    """
    Mirrors left to right, with `probability`.

    Errors   ValueError  a probability outside 0 to 1
    """

def vertical_flip(probability: float = 0.5) -> Augmentation:
    """
    Mirrors top to bottom, with `probability`.

    Errors   ValueError  a probability outside 0 to 1
    """

def rotate(degrees: float | tuple[float, float], *, interpolation: Literal['nearest', 'bilinear', 'bicubic'] = 'nearest', fill: int | tuple[int, int, int] = 0) -> Augmentation:
    """
    Rotates about the middle, counterclockwise, by `degrees`.

    Options
      degrees        a number, or (low, high) to draw from
      interpolation  how levels between pixels are computed: "nearest"; "bilinear" (torchvision's, which blends
                     with the fill at the edges); "bicubic" (Pillow's: Keys' cubic with a = -1, which repeats the
                     outermost pixels at the edges)
      fill           the colour outside the image; grey images need three equal levels; one level, or (red, green,
                     blue), from 0 to 255

    Errors   ValueError  a range that is empty or goes beyond -360 to 360
    Source   torchvision's rotate
    """

def shear(x: float | tuple[float, float], y: float | tuple[float, float] = (0.0, 0.0), *, interpolation: Literal['nearest', 'bilinear', 'bicubic'] = 'nearest', fill: int | tuple[int, int, int] = 0) -> Augmentation:
    """
    Shears about the middle, by `x` degrees to the right and `y` degrees downwards, from -80 to 80.

    Options
      x              a number, or (low, high) to draw from
      y              a number, or (low, high) to draw from
      interpolation  how levels between pixels are computed: "nearest"; "bilinear" (torchvision's, which blends
                     with the fill at the edges); "bicubic" (Pillow's: Keys' cubic with a = -1, which repeats the
                     outermost pixels at the edges)
      fill           the colour outside the image; grey images need three equal levels; one level, or (red, green,
                     blue), from 0 to 255

    Errors   ValueError  a range that is empty or goes beyond
    Source   torchvision's affine
    """

def translate(x: float | tuple[float, float], y: float | tuple[float, float], *, interpolation: Literal['nearest', 'bilinear', 'bicubic'] = 'nearest', fill: int | tuple[int, int, int] = 0) -> Augmentation:
    """
    Moves by whole pixels: by the fraction `x` of the width and `y` of the height, from -1 to 1.

    Options
      x              a number, or (low, high) to draw from
      y              a number, or (low, high) to draw from
      interpolation  how levels between pixels are computed: "nearest"; "bilinear" (torchvision's, which blends
                     with the fill at the edges); "bicubic" (Pillow's: Keys' cubic with a = -1, which repeats the
                     outermost pixels at the edges)
      fill           the colour outside the image; grey images need three equal levels; one level, or (red, green,
                     blue), from 0 to 255

    Errors   ValueError  a range that is empty or goes beyond
    Source   torchvision's RandomAffine
    """

def affine(*, degrees: float | tuple[float, float] = (0.0, 0.0), translate_x: float | tuple[float, float] = (0.0, 0.0), translate_y: float | tuple[float, float] = (0.0, 0.0), scale: float | tuple[float, float] = (1.0, 1.0), shear_x: float | tuple[float, float] = (0.0, 0.0), shear_y: float | tuple[float, float] = (0.0, 0.0), interpolation: Literal['nearest', 'bilinear', 'bicubic'] = 'nearest', fill: int | tuple[int, int, int] = 0) -> Augmentation:
    """
    Rotates, moves, scales and shears at once, about the middle.

    Options
      degrees        rotation, clockwise; a number, or (low, high) to draw from
      translate_x    fraction of the width, rounded to whole pixels; a number, or (low, high) to draw from
      translate_y    fraction of the height, rounded to whole pixels; a number, or (low, high) to draw from
      scale          factor of the size, from 0.01 to 100; a number, or (low, high) to draw from
      shear_x        degrees to the right; a number, or (low, high) to draw from
      shear_y        degrees downwards; a number, or (low, high) to draw from
      interpolation  how levels between pixels are computed: "nearest"; "bilinear" (torchvision's, which blends
                     with the fill at the edges); "bicubic" (Pillow's: Keys' cubic with a = -1, which repeats the
                     outermost pixels at the edges)
      fill           the colour outside the image; grey images need three equal levels; one level, or (red, green,
                     blue), from 0 to 255

    Errors   ValueError  as rotate, shear and translate; a scale outside 0.01 to 100
    Source   torchvision's RandomAffine
    """

def perspective(distortion: float = 0.5, *, interpolation: Literal['nearest', 'bilinear', 'bicubic'] = 'bilinear', fill: int | tuple[int, int, int] = 0) -> Augmentation:
    """
    Moves each corner inwards by up to `distortion` of half the image.

    Options
      interpolation  how levels between pixels are computed: "nearest"; "bilinear" (torchvision's, which blends
                     with the fill at the edges); "bicubic" (Pillow's: Keys' cubic with a = -1, which repeats the
                     outermost pixels at the edges)
      fill           the colour outside the image; grey images need three equal levels; one level, or (red, green,
                     blue), from 0 to 255

    Errors   ValueError  a distortion outside 0 to 1
    Source   torchvision's RandomPerspective
    """

def random_apply(probability: float, operations: Sequence[Augmentation]) -> Augmentation:
    """
    Does all of `operations`, in this order, with `probability`, or none.

    Errors   ValueError  a probability outside 0 to 1
    """

def random_choice(operations: Sequence[Augmentation], weights: Sequence[float] | numpy.ndarray = ()) -> Augmentation:
    """
    Does one of `operations`, with probabilities in proportion to `weights` where there are any.

    Errors   ValueError  no operation; another number of weights, one below 0, or none above it
    """

def trivial_augment_wide(magnitudes: int = 31, *, interpolation: Literal['nearest', 'bilinear', 'bicubic'] = 'nearest', fill: int | tuple[int, int, int] = 0) -> Augmentation:
    """
    Does one of 14 operations at one of `magnitudes` strengths.

    Options
      interpolation  how levels between pixels are computed: "nearest"; "bilinear" (torchvision's, which blends
                     with the fill at the edges); "bicubic" (Pillow's: Keys' cubic with a = -1, which repeats the
                     outermost pixels at the edges)
      fill           the colour outside the image; grey images need three equal levels; one level, or (red, green,
                     blue), from 0 to 255

    Errors   ValueError  magnitudes outside 2 to 1000
    Source   Mueller, Hutter: TrivialAugment (ICCV 2021); torchvision's TrivialAugmentWide
    """

def rand_augment(operations: int = 2, magnitude: int = 9, magnitudes: int = 31, *, interpolation: Literal['nearest', 'bilinear', 'bicubic'] = 'nearest', fill: int | tuple[int, int, int] = 0) -> Augmentation:
    """
    Does some of 14 operations, all of one strength.

    Options
      operations     how many are done, one after another
      magnitude      their strength, from 0 to below `magnitudes`
      magnitudes     how many strengths there are
      interpolation  how levels between pixels are computed: "nearest"; "bilinear" (torchvision's, which blends
                     with the fill at the edges); "bicubic" (Pillow's: Keys' cubic with a = -1, which repeats the
                     outermost pixels at the edges)
      fill           the colour outside the image; grey images need three equal levels; one level, or (red, green,
                     blue), from 0 to 255

    Errors   ValueError  operations outside 0 to 16, or a magnitude that is not one of them
    Source   Cubuk, Zoph, Shlens, Le: RandAugment (2019); torchvision's RandAugment
    """

def auto_augment(*, interpolation: Literal['nearest', 'bilinear', 'bicubic'] = 'nearest', fill: int | tuple[int, int, int] = 0) -> Augmentation:
    """
    Does one of 25 pairs of operations, with their strengths and probabilities: the policy for ImageNet.

    Options
      interpolation  how levels between pixels are computed: "nearest"; "bilinear" (torchvision's, which blends
                     with the fill at the edges); "bicubic" (Pillow's: Keys' cubic with a = -1, which repeats the
                     outermost pixels at the edges)
      fill           the colour outside the image; grey images need three equal levels; one level, or (red, green,
                     blue), from 0 to 255

    Source   Cubuk, Zoph, Mane, Vasudevan, Le: AutoAugment (CVPR 2019); torchvision's AutoAugment
    """

def aug_mix(severity: int = 3, width: int = 3, depth: int = 0, alpha: float = 1.0, all_operations: bool = True, *, interpolation: Literal['nearest', 'bilinear', 'bicubic'] = 'bilinear', fill: int | tuple[int, int, int] = 0) -> Augmentation:
    """
    Mixes the image with the results of several chains of operations on it.

    Options
      severity        strength of the operations, 1 to 10
      width           how many chains of operations are mixed, 1 to 10
      depth           operations in a chain, 1 to 16; 0 for a random number from 1 to 3
      alpha           parameter of the Dirichlet and the Beta distribution of weights
      all_operations  whether brightness, contrast, saturation and sharpness are among them
      interpolation   how levels between pixels are computed: "nearest"; "bilinear" (torchvision's, which blends
                      with the fill at the edges); "bicubic" (Pillow's: Keys' cubic with a = -1, which repeats the
                      outermost pixels at the edges)
      fill            the colour outside the image; grey images need three equal levels; one level, or (red,
                      green, blue), from 0 to 255

    Errors   ValueError  an option out of range
    Source   Hendrycks et al.: AugMix (ICLR 2020); torchvision's AugMix
    """

def timm_rand_augment(config: str = 'rand-m9-mstd0.5-inc1', *, interpolation: Literal['nearest', 'bilinear', 'bicubic'] | None = None, fill: int | tuple[int, int, int] = 128) -> Augmentation:
    """
    timm's RandAugment with its own operations and strengths, from its strings: `config`. Sections behind "rand",
    in any order: m magnitude (10), n operations (2), p the probability of each (0.5), mstd the standard deviation
    of the magnitude (0; above 100: uniform from 0), mmax its upper bound (10), inc1 strengths that all grow with
    it.

    Options
      interpolation  how levels between pixels are computed, as Pillow does it; by default bilinear or bicubic at
                     random: "nearest"; "bilinear" (torchvision's, which blends with the fill at the edges);
                     "bicubic" (Pillow's: Keys' cubic with a = -1, which repeats the outermost pixels at the
                     edges)
      fill           the colour outside the image; one level, or (red, green, blue), from 0 to 255

    Errors   ValueError  a string that is not of this kind; names the section
    Source   timm.data.auto_augment, 1.0
    """

def three_augment(color_jitter: float = 0.3, kernel_size: int = 13) -> Augmentation:
    """
    Does greyscale, solarisation or a Gaussian blur, then colour jitter. Made of random_choice and color_jitter.

    Options
      color_jitter  strength of brightness, contrast and saturation; 0 for none
      kernel_size   size of the blur, in pixels

    Errors   ValueError  as color_jitter and gaussian_blur
    Source   Touvron, Cord, Jegou: DeiT III (ECCV 2022)
    """

class Tensor:
    """
    One field of all rows of a batch, in device memory.

    For frameworks: torch.from_dlpack(t), jax.dlpack.from_dlpack(t), numpy.asarray(t),
    cupy.from_dlpack(t). Nothing is copied, and the batch's slot stays leased while anything
    made from it lives. The memory may be written to.

    Shapes  [rows, ...]
    Stream  __dlpack__(stream=s) makes s wait until the batch has arrived; the host does not wait.
            The memory is not reused before what s was given until the last tensor of the batch is
            dropped has finished. For other streams call DeviceBatch.wait_on.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> str:
        """"u8", "f32" and so on."""

    @property
    def ndim(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def device(self) -> Device: ...

    @property
    def address(self) -> int:
        """Of the first element, in host or device memory."""

    def numpy(self) -> Any:
        """
        numpy.asarray(self): a view of the memory, of a host device.

        Errors  TypeError  the tensor is on a GPU
        """

    def copy(self) -> Any:
        """
        A numpy array of its own, for what is kept: it does not hold the batch's slot.

        Errors  TypeError  the tensor is on a GPU
        """

    def __len__(self) -> int: ...

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """
        A DLPack capsule, versioned where max_version allows.

        Stream  on cuda:i, `stream` is made to wait until the batch has arrived; None is the legacy
                default stream, -1 asks for no ordering.
        Errors  BufferError  another device, or a copy on a GPU, was asked for
        """

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def __array_interface__(self) -> dict[str, Any]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """
        Version 3; waits until the bytes are there. What other streams than the legacy one still read when the batch is released is not waited for: take __dlpack__ for those.
        """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...

    def __repr__(self) -> str: ...

class Report:
    """How a run went, made by Loader.report(). str() is a page to read."""

    @property
    def stats(self) -> Stats: ...

    @property
    def advice(self) -> str:
        """
        What limits the speed, and what to do about it, with an estimate of what that would give.
        """

    def to_text(self) -> str:
        """As penstock-throughput prints it."""

    def to_json(self) -> str:
        """The object of penstock-throughput --json."""

    def __str__(self) -> str: ...

class PrepareReport:
    """
    What was done to some samples; reports of shards add up, in their order.
    """

    @property
    def samples(self) -> int: ...

    @property
    def transcoded(self) -> int:
        """images that were transcoded losslessly"""

    @property
    def shrunk(self) -> int:
        """images that were made smaller"""

    @property
    def indexed(self) -> int:
        """images of which it is known where decoding can begin"""

    @property
    def bytes_in(self) -> int:
        """of the images before"""

    @property
    def bytes_out(self) -> int:
        """of the images after"""

    @property
    def kept(self) -> dict[str, int]:
        """images that were packed as they were: why, and how many"""

    @property
    def listed(self) -> list[str]:
        """the first 100 of those, and of what was left out"""

    @property
    def left_out(self) -> int:
        """records that cannot be read"""

    @property
    def tar_bytes(self) -> int:
        """of the shards"""

    def to_json(self) -> str:
        """The object of penstock-prepare --json."""

    @staticmethod
    def from_json(text: str) -> PrepareReport:
        """Of what to_json() made."""

    def __eq__(self, other: object, /) -> bool: ...

class PrepareShard:
    """One shard, and the samples [first, last) of the input that go into it."""

    @property
    def number(self) -> int: ...

    @property
    def first(self) -> int: ...

    @property
    def last(self) -> int: ...

    @property
    def file(self) -> str:
        """where it is written"""

class Preparation:
    """
    Which shards an input makes, and how each is made: prepare_shards() in parts, for several machines. The same
    input and options give the same shards, byte for byte, on every machine.

    Threads  const; make() uses threads of its own, and is called by one at a time.
    """

    def __init__(self, input: str | os.PathLike[str], output: str | os.PathLike[str], *, name: str = 'data', shard_samples: int = 1000, interval: int = 8, longest_side: int = 0, quality: int = 90, also: str | Sequence[str] = ('json', 'txt'), skip_bad: bool = False, threads: int = 0, attempts: int = 5) -> None:
        """
        `input`: a folder of images (class per sub-folder, or flat), or tar shards or TFRecord files: a folder of
        them, or a pattern. `output`: a folder. Both also as s3://bucket/prefix. Nothing is written here.

        Options
          name           shards are called NAME-000000.tar and so on
          shard_samples  samples in a shard
          interval       about how many MCUs lie between two restart markers
          longest_side   JPEGs with a longer one, in pixels, are shrunk to it; 0: none is
          quality        what those are encoded with, 1 to 100
          also           other members of tar shards to copy
          skip_bad       leave out records that cannot be read, instead of stopping
          threads        threads that transcode; 0: one per core
          attempts       how often a read or write is attempted that fails as networks do

        Errors   ValueError  an option out of its range; an output inside the input, or that cannot be written to
                 Error       nothing there, or nothing that it knows
        """

    def make(self, shard: int, *, progress: Callable[[int, int], object] | None = None) -> PrepareReport:
        """
        Writes a shard and what lies beside it: its JPEG index, and in a bucket its index (*.penstock-index). Each
        appears whole, the shard last; made again, it has the same bytes. A folder must be there.

        Options
          progress  is called with the samples done and all samples now and then, in the calling thread

        Errors   DataError   a sample that cannot be read
                 Error       the output cannot be written; `stop` was requested
                 ValueError  there is no such shard
        """

    @property
    def samples(self) -> int: ...

    @property
    def fingerprint(self) -> str:
        """Of the input: equal where it has the same samples."""

    @property
    def shards(self) -> list[PrepareShard]: ...

    @property
    def output(self) -> str: ...

    def differences(self, shard: int) -> list[str]:
        """
        Makes a shard again without writing it, and compares it with the one that is there: in what they differ, a
        line each.
        """

class PrepareRun:
    """
    How far a preparation has come, kept in its output (penstock-prepare.json), so that one that was killed goes on.

        plan = ps.Preparation(input, output)            # the same on every machine
        run = ps.PrepareRun(plan)                       # on one
        for shard in run.missing():
            run.add(shard, plan.make(shard))            # make(): anywhere
        report = run.finish()

    One process for an output: a folder is locked, where its file system has locks; a bucket has none.

    Threads  one at a time
    Errors   Error  the output was made otherwise, is damaged, holds other files, or another process writes to it
    """

    def __init__(self, work: Preparation) -> None: ...

    def missing(self) -> list[int]:
        """The shards that are not there yet, in their order."""

    @property
    def changed(self) -> list[str]:
        """
        What was recorded and has been changed or removed since, and so is missing: a line each.
        """

    def add(self, shard: int, report: PrepareReport) -> None:
        """
        Records that a shard was made, with what make() returned.

        Errors   ValueError    there is no such shard
                 RuntimeError  this is read_only()
                 Error         the record cannot be written
        """

    def finish(self) -> PrepareReport:
        """
        Removes what machines that are gone left half done, and opens the shards as readers will, which in a folder
        makes their indexes; the report of all.

        Errors   RuntimeError  shards are missing, or this is read_only()
                 Error         the shards hold other than was written
        """

def prepare(input: str | os.PathLike[str], output: str | os.PathLike[str], *, name: str = 'data', shard_samples: int = 1000, interval: int = 8, longest_side: int = 0, quality: int = 90, also: str | Sequence[str] = ('json', 'txt'), skip_bad: bool = False, threads: int = 0, attempts: int = 5, progress: Callable[[int, int], object] | None = None) -> PrepareReport:
    """
    Packs JPEGs into tar shards that decode faster, without changing a pixel: all of a Preparation, on this
    machine, as penstock-prepare does it. `input` and `output` are those of Preparation. One that was stopped or
    killed goes on when it is called again.

    Options
      name           shards are called NAME-000000.tar and so on
      shard_samples  samples in a shard
      interval       about how many MCUs lie between two restart markers
      longest_side   JPEGs with a longer one, in pixels, are shrunk to it; 0: none is
      quality        what those are encoded with, 1 to 100
      also           other members of tar shards to copy
      skip_bad       leave out records that cannot be read, instead of stopping
      threads        threads that transcode; 0: one per core
      attempts       how often a read or write is attempted that fails as networks do
      progress       is called with the samples done and all samples now and then, in the calling thread

    Errors   ValueError  an option out of its range; an output inside the input, or that cannot be written to
             DataError   a sample that cannot be read; names the file
             Error       nothing there that it knows; the output was made otherwise, or cannot be written
    """

class DeviceBatch:
    """
    One replica's rows of a global batch, on its device.

    A Mapping of field names to Tensors: dict(batch), batch["image"].

    Owns    its slot, for as long as it or any tensor made from it lives; it may outlive the loader.
    """

    def __getitem__(self, field: str) -> Tensor:
        """
        One field of all rows.

        Shapes  [size, ...]
        Errors  KeyError  there is no such field; names those there are
        """

    def get(self, field: str, default: Any = None) -> Any:
        """The field, or `default` where there is none of this name."""

    def __contains__(self, field: object) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int:
        """The number of fields."""

    def keys(self) -> list[str]: ...

    def values(self) -> list[Tensor]: ...

    def items(self) -> list[tuple[str, Tensor]]: ...

    @property
    def device(self) -> Device: ...

    @property
    def replica(self) -> int:
        """The replica's number over all processes."""

    @property
    def step(self) -> int: ...

    @property
    def size(self) -> int:
        """Rows, padding included; may be 0 at the end of the data."""

    @property
    def samples(self) -> list[SampleId]:
        """
        Sample IDs of the rows, in order; shorter than size() when the batch was padded.
        """

    @property
    def fields(self) -> list[FieldSpec]: ...

    @property
    def nbytes(self) -> int:
        """Payload over all fields; padding between them is left out."""

    def wait_on(self, stream: int) -> None:
        """
        Makes a CUDA stream wait until this part has arrived; the host does not wait.
        The memory is not reused before everything given to that stream until this batch is dropped
        has finished. Not needed for the stream that DLPack was given.

        Stream  its address, torch.cuda.current_stream().cuda_stream, which must outlive this batch.
                Does nothing on a host device.
        Errors  CudaError
        """

    def copy_to(self, field: str, destination: Any, *, stream: int | None = None) -> None:
        """
        Copies a field to the caller's memory, a numpy array or a torch tensor on the same
        device, for example the static inputs of a captured CUDA graph. The memory after
        a short batch stays unchanged.

        Shapes  destination: of the field's dtype, dense, with at least as many elements
        Stream  on a CUDA device queued on `stream`, by default torch's current one, which waits as
                with wait_on; the host does not wait. On a host device it is done on return.
        Errors  KeyError  there is no such field; ValueError  another dtype or device, or too little
                room; CudaError
        """

    def synchronize(self) -> None:
        """Lets the host wait until this part has arrived."""

    def __repr__(self) -> str: ...

class Step:
    """
    One step of training: a DeviceBatch for every device of this process.

    With one device it is a Mapping of field names to Tensors, as the batch: step["image"], dict(step).
    With several: for batch in step.parts.
    """

    def __getitem__(self, field: str) -> Tensor:
        """
        One field of all rows.

        Shapes  [size, ...]
        Errors  KeyError  there is no such field; names those there are
        """

    def get(self, field: str, default: Any = None) -> Any:
        """The field, or `default` where there is none of this name."""

    def __contains__(self, field: object) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int:
        """The number of fields."""

    def keys(self) -> list[str]: ...

    def values(self) -> list[Tensor]: ...

    def items(self) -> list[tuple[str, Tensor]]: ...

    @property
    def parts(self) -> list[DeviceBatch]:
        """A DeviceBatch for every device of this process, in their order."""

    @property
    def number(self) -> int:
        """Counted from 0 at the very start, also after a resume."""

    @property
    def epoch(self) -> int:
        """The epoch of the global batch's first sample."""

    @property
    def global_samples(self) -> int:
        """Samples in the global batch, over all processes."""

    @property
    def samples(self) -> list[SampleId]:
        """This process's samples, in row order over its parts."""

    @property
    def faults(self) -> list[Fault]:
        """Tolerated faults in this process's rows."""

    @property
    def digest(self) -> str:
        """
        Of this process's rows, 32 hexadecimal digits; zero unless loader(digest=True). Waits until
        GPUs have hashed theirs.

        Errors  CudaError  a GPU is lost
        """

    @property
    def transformed_digest(self) -> str:
        """
        The same of what device transforms made; zero unless loader(digest_transformed=...).

        Errors   CudaError  a device is lost
        """

    def __repr__(self) -> str: ...

class StageTime:
    """
    How long a stage took.

    Units    seconds of wall time; busy_s adds up over threads
    """

    @property
    def wait_s(self) -> float:
        """how long the consumer waited for this stage"""

    @property
    def busy_s(self) -> float:
        """how long threads worked in it (for slot: how long the driver waited)"""

class RemoteStats:
    """Rows that were made elsewhere, since this run began."""

    @property
    def rows(self) -> int:
        """rows that were taken, also of steps that are not delivered yet"""

    @property
    def tasks(self) -> int:
        """tasks that they came in"""

    @property
    def bytes(self) -> int: ...

    @property
    def given_back(self) -> int:
        """tasks that others had to do"""

    @property
    def wait_s(self) -> float:
        """from taking a task to its rows, added up over the tasks"""

    @property
    def made_s(self) -> float:
        """of this time: making the rows; the rest is spent on the way"""

    @property
    def copy_s(self) -> float:
        """copying the rows to their slots"""

class Stats:
    """
    Where the time of a loader went, so far. consume_s and the stages' wait_s add up to `seconds`; with
    DeviceLoaders they are means over the devices.
    """

    @property
    def samples(self) -> int:
        """delivered to this process's replicas"""

    @property
    def steps(self) -> int:
        """delivered in this run"""

    @property
    def bytes_read(self) -> int:
        """from storage, for the samples delivered"""

    @property
    def seconds(self) -> float:
        """from the first next() or start() to the end of the data or stop()"""

    @property
    def consume_s(self) -> float:
        """spent by the caller between calls of next()"""

    @property
    def first_batch_s(self) -> float: ...

    @property
    def remote(self) -> RemoteStats: ...

    @property
    def stall_fraction(self) -> float:
        """Share of the time since the first batch that the consumer waited."""

    @property
    def faults(self) -> int: ...

    @property
    def retries(self) -> int:
        """reads that were repeated, in the steps delivered"""

    @property
    def memory_bytes(self) -> int:
        """held now, as counted against the budget"""

    @property
    def memory_peak_bytes(self) -> int: ...

    @property
    def slots(self) -> int:
        """places for a batch that the ring has"""

    @property
    def held_slots(self) -> int:
        """slots of batches that the caller still holds"""

    @property
    def threads(self) -> int:
        """threads that decode"""

    @property
    def io_threads(self) -> int:
        """threads that read ahead"""

    @property
    def waiting_for(self) -> int | None:
        """
        The part (of Loader.devices()) whose consumer keeps the others waiting: it is behind them, and holds the slots that they need. None when no consumer waits for another.
        """

    @property
    def stages(self) -> dict[str, StageTime]:
        """
        order, slot, read, decode, remote, copy, device_transform: what the consumer waited for, and for how long.
        """

    @property
    def functions(self) -> dict[str, dict[str, float]]:
        """
        Python functions and data sets: calls, busy_s in them, and wait_s for the GIL, over all threads.
        """

    @property
    def bottleneck(self) -> str:
        """
        The stage waited for longest, or "consumer" for less than 2% of the time.
        """

    def __repr__(self) -> str: ...

class DeviceLoader:
    """
    One device's side of a loader: delivers that device's part of every step, in order. A consumer that falls
    behind holds the slots of what it has not taken, so the others can be ahead of it by the depth of
    prefetch_to_devices and then wait; Stats.waiting_for names it. All devices see the end, or an error, in the
    same step.

    Threads  one thread per DeviceLoader; it may outlive the Loader, and then has no more data.
    """

    def __iter__(self) -> DeviceLoader: ...

    def __next__(self) -> DeviceBatch: ...

    def wait_for(self, timeout: float | None = None) -> bool:
        """As Loader.wait_for."""

    @property
    def device(self) -> Device: ...

    @property
    def part(self) -> int: ...

class Epoch:
    """The steps of one epoch that are left."""

    @property
    def number(self) -> int: ...

    def __iter__(self) -> Epoch: ...

    def __next__(self) -> Step: ...

class Epochs:
    """
    The epochs that are left. Advancing skips what is left of the current one.
    """

    def __iter__(self) -> Epochs: ...

    def __next__(self) -> Epoch: ...

class Loader:
    """
    The running input pipeline: an iterator over Steps, decoded ahead by its own threads.

    Waiting releases the GIL; Ctrl-C interrupts it. Dropping a loader at any moment joins its
    threads; batches that are still held stay valid. A loader cannot be used after a fork.

    Threads  any; threads that share one take turns, and each gets different steps.
    """

    def __iter__(self) -> Loader:
        """
        Loops over what is left.

        Errors  RuntimeError  the loader has ended: a second loop is an error, not silence
        """

    def __aiter__(self) -> AsyncIterator[Step]:
        """
        async for step in loader: as the loop without async; other tasks run while it waits.
        """

    def __repr__(self) -> str: ...

    def __next__(self) -> Step:
        """
        The next step.

        Errors  DataError  a fault that the policy does not tolerate, at its step and on every later call
                CudaError  a copy could not be queued; and on every later call
                Error      every slot is in a batch that you still hold: it would wait forever
        """

    def __len__(self) -> int:
        """
        Steps from the very start to the end of the plan.

        Errors  TypeError  the plan is endless
        """

    @property
    def size(self) -> int | None:
        """Steps from the very start to the end of the plan; None when endless."""

    def epochs(self) -> Epochs:
        """
        for epoch in loader.epochs(): for step in epoch: ...

        A step belongs to the epoch of its first sample. Advancing to the next epoch skips what is
        left of the current one.
        """

    def next_epoch(self) -> int | None:
        """
        The epoch of the step that next() will return; none at the end. Waits until it is known, not until the step is
        ready.
        """

    def wait_for(self, timeout: float | None = None) -> bool:
        """
        Waits up to `timeout` until the next step is ready; says whether it is. True also at the
        end of the data, where next() returns at once.

        Units   `timeout` in seconds; None: no limit.
        Errors  as __next__
        """

    def has_ended(self) -> bool:
        """Whether next() has returned none, or stop() was called."""

    def device(self, part: int) -> DeviceLoader:
        """
        The batches of one device alone, for a consumer thread of its own; `part` counts devices().

        Errors   IndexError  there is no such device
        """

    def start(self) -> None:
        """Starts reading ahead now rather than at the first next()."""

    def stop(self) -> None:
        """
        Ends the data here for every consumer: waiting consumers are woken, and all get none. The threads are joined.
        load_state_dict() starts the loader again.
        """

    def __enter__(self) -> Loader: ...

    def __exit__(self, type: object, value: object, traceback: object, /) -> None:
        """stop()."""

    def facts(self) -> dict[str, str]:
        """
        What must be the same in all processes of a run, for require_agreement(): the plan with the fingerprints of
        its data, the seed, the step that comes next, and the number of processes.
        """

    def state_dict(self) -> dict[str, Any]:
        """
        What was delivered so far, not what was read ahead: plain values, a few hundred bytes as
        JSON, the same format as in C++. The state of any process can be restored in any world. With
        digests it waits as `digest` does.
        """

    def load_state_dict(self, state: Mapping[str, Any] | str) -> None:
        """
        Resumes from `state`: the next step is the one that would have followed. Prefetched steps are discarded.
        Threads, depth, devices and processes may differ from those that saved it.

        Errors   Error  another dataset or plan; says what differs. The loader stays where it was.
        """

    def row_tasks(self) -> RowTasks:
        """
        For somebody who makes rows of its steps elsewhere: see penstock.remote.
        """

    def rewind(self) -> None:
        """
        Restarts from step 0, on the same threads and memory: for a validation set that is read again and again. The
        position, faults and digests reset; stats() goes on.

        Errors   Error  the plan reads a stream
        """

    def set_weights(self, step: int, weights: Sequence[float]) -> None:
        """
        From `step` on, the datasets of the mix come in these proportions. What was prefetched is discarded; states
        that are saved from now on include the change. Every process must make the same call.

        Errors   RuntimeError  the plan is no mix followed by batch alone
                 ValueError    a step that was delivered already; weights that do not fit
        """

    def batch_at(self, step: int) -> Step:
        """
        Any past or future step of the plan, computed now; the loader's own position does not move.

        Errors   IndexError  the plan has no such step; and as for next()
        """

    @property
    def seed(self) -> int:
        """The seed in use: the plan's, or the one that was drawn."""

    @property
    def devices(self) -> list[Device]: ...

    @property
    def fields(self) -> list[FieldSpec]: ...

    def stats(self) -> Stats: ...

    def report(self) -> Report:
        """
        How the run went so far: a page to print, as JSON, and advice on what limits the speed. Waits as
        digest does.
        """

    def progress(self) -> dict[str, Any]:
        """
        Samples a second, the share of the time that the loop waited, and what for: short, for
        tqdm's set_postfix(loader.progress()).
        """

    def samples_per_device(self) -> list[int]:
        """Samples delivered to each of devices(), in their order."""

    def faults(self) -> list[Fault]:
        """The first 100 tolerated faults, in the order of delivery."""

    @property
    def digest(self) -> str:
        """
        Sum over everything delivered since the very start, 32 hexadecimal digits; zero
        unless loader(digest=True). Waits until GPUs have hashed what was delivered; the next step
        never waits for that.

        Errors  CudaError  a GPU is lost
        """

    @property
    def transformed_digest(self) -> str:
        """
        The same of what device transforms made of it, as it lies on the devices; zero unless
        loader(digest_transformed=...). With mixup or cutmix it depends on the split, as the bytes do.

        Errors   CudaError  a device is lost
        """

class RandomErasing:
    """
    A rectangle of each image that is painted over, as torchvision's RandomErasing.

    Source   Zhong, Zheng, Kang, Li, Yang: Random Erasing Data Augmentation (AAAI 2020)
    """

    def __init__(self, probability: float = 0.0, *, area: float | tuple[float, float] = (0.02, 0.33), ratio: float | tuple[float, float] = (0.3, 3.3), value: float | Sequence[float] | numpy.ndarray = ()) -> None:
        """
        Options
          probability  probability that an image is erased
          area         the fraction of the image's area; a number, or (low, high) to draw from
          ratio        height / width; a number, or (low, high) to draw from
          value        one number per channel or one for all, in normalised units; by default 0, which is the mean
        """

    @property
    def probability(self) -> float:
        """probability that an image is erased"""

    @property
    def area(self) -> tuple[float, float]:
        """
        the fraction of the image's area; a number, or (low, high) to draw from
        """

    @property
    def ratio(self) -> tuple[float, float]:
        """height / width; a number, or (low, high) to draw from"""

    @property
    def value(self) -> list[float]:
        """
        one number per channel or one for all, in normalised units; by default 0, which is the mean
        """

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __repr__(self) -> str: ...

class PackSummary:
    """The result of pack."""

    @property
    def rows(self) -> int:
        """number of rows"""

    @property
    def documents(self) -> int:
        """documents of the source"""

    @property
    def tokens(self) -> int:
        """tokens in rows"""

    @property
    def dropped(self) -> int:
        """tokens that are in no row, since long_documents is truncate or drop"""

    @property
    def max_documents_per_row(self) -> int:
        """
        the largest number of documents in a row, where each part of a split one counts; 0 for wrap without cu_seqlens
        """

    @property
    def padding_fraction(self) -> float:
        """the fraction of all tokens that is padding"""

    def __repr__(self) -> str: ...

class Bucket:
    """One of BucketSummary.buckets."""

    @property
    def edge(self) -> int:
        """The length that its samples are padded to; 0 of images."""

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width) of its images; (0, 0) of other samples."""

    @property
    def rows(self) -> int:
        """Rows of a full global batch."""

    @property
    def samples(self) -> int: ...

    @property
    def crop_fraction(self) -> float:
        """The fraction of its images' pixels that is cut away."""

    def __repr__(self) -> str: ...

class BucketSummary:
    """The result of batch_by_length or batch_by_aspect."""

    @property
    def buckets(self) -> list[Bucket]: ...

    @property
    def batches(self) -> int:
        """batches of an epoch"""

    @property
    def samples(self) -> int:
        """samples in them"""

    @property
    def dropped(self) -> int:
        """
        samples in no batch: those that long_samples or unmatched drop, images of size (0, 0), and in each epoch others where remainder is drop
        """

    @property
    def padding_fraction(self) -> float:
        """the fraction of all tokens that is padding, for batches by length"""

    @property
    def crop_fraction(self) -> float:
        """
        the fraction of all pixels that is cut away where images cover their shapes, for batches by aspect
        """

    def __repr__(self) -> str: ...

class Dataset:
    """
    What to read, in which order, how to transform and batch it, and where it goes. Immutable: every call returns
    a new plan and leaves this one as it was. A plan that cannot work fails in the call that makes it so, or in
    loader(), where devices and processes are known; the message says what to do. Nothing is read before a Loader
    runs.

    Threads  a value; const calls from any number of threads.
    """

    def __init__(self, data: Stream | Any, *, fields: Sequence[FieldSpec] | Mapping[str, tuple[str, Sequence[int | None]]] | None = None, names: Sequence[str] | None = None, workers: int = 0, lengths: Sequence[int] | Any = None) -> None:
        """
        The items of any object with __len__ and __getitem__: a PyTorch or Hugging Face data set, a
        list; shuffled, sharded, repeated and resumed as any source. Or the records of a stream, as they
        arrive: Dataset(queue).

        An item is a dict by field name; a tuple, whose parts `names` names; or a single value, the field
        "item". Values are arrays and tensors, PIL images (u8 [H,W,C]), numbers, bytes and strings (u8 [?]).
        `fields` says what they are, as in map_function; by default the first, the middle and the last
        item do, and an extent in which these differ may differ.

        The loader's threads call data[i], with the GIL. Where the code holds it for long, give `workers`:
        so many processes (spawn; the data set must pickle, and the program needs its
        if __name__ == "__main__"), with the fields in shared memory. A worker seeds random, numpy and torch
        from (seed, epoch, number, draw) before each item, so that what is random in it resumes; with
        threads such randomness is different in every run.

        `lengths`: the number of tokens of each item, in the field that is packed, for pack and blocks, which
        compute with them before an item is read. Fields of one dimension then differ in length.

        Errors  TypeError   no __len__ or __getitem__
                ValueError  no items and no fields, tuples without names, values of which no array can be
                            made; not one length for each item
        """

    def filter(self, keep: Callable[[RecordInfo], object]) -> Dataset:
        """
        Only the records for which `keep` is true; nothing is decoded for it. They keep their
        numbers. Must come before every operation on positions. `keep` is called here, once a record.

        Errors  ValueError  it comes after an operation on positions, or nothing is kept
        """

    @property
    def packed(self) -> PackSummary | None:
        """
        The result of pack(): all rows, also where a later operation leaves some out. None where the plan does not
        begin with packed rows of its own.
        """

    def blocks(self, length: int, *, stride: int | None = None, labels: bool = True, dtype: str = 'i64', field: str = 'tokens') -> Dataset:
        """
        Cuts all documents of the source, concatenated, into blocks of `length` tokens: those are the samples from
        here on. It must be the first operation, since documents then have no order of their own. The tokens after the
        last whole block are in no block.

        Options
          length  tokens of a block
          stride  tokens from the beginning of one block to that of the next, by default `length`; with 1 a block
                  begins at every token, as nanoGPT draws them
          labels  whether there is a second field, of the token that follows each, also across the ends of documents
                  and blocks; Hugging Face's models shift labels themselves, and take the tokens as labels
          dtype   type of the tokens: i32, i64, or the source's, which needs no conversion
          field   the field of the source, integers of shape [?]

        Shapes   tokens [length]; with labels, labels [length]
        Errors   ValueError  another operation stands before it; a length or stride below 1; another type; no such
                             field
                 Error       a document whose length is not known or damaged
        """

    def pack(self, length: int, *, method: Literal['best_fit', 'first_fit', 'wrap'] = 'best_fit', long_documents: Literal['split', 'truncate', 'drop'] = 'split', outputs: Sequence[Literal['tokens', 'labels', 'positions', 'segment_ids', 'loss_mask', 'cu_seqlens', 'max_seqlen']] = ('tokens', 'labels', 'positions', 'segment_ids'), dtype: str = 'i64', pad: int = 0, ignore: int = -100, shift_labels: bool = True, labels_across_documents: bool = False, label_mask: str = '', max_documents_per_row: int | None = None, seed: int | None = None, field: str = 'tokens') -> Dataset:
        """
        Packs the documents of the source into rows of `length` tokens: those are the samples from here on, in every
        epoch the same rows. It must be the first operation. Rows are computed here once, from the lengths alone, by
        all cores; with best_fit and first_fit in windows of 65,536 documents.

        Options
          length                   tokens of a row
          method                   the row into which each document goes: "best_fit" (the longest first, each into the
                                   fullest row that has room for it: the least padding); "first_fit" (in their order,
                                   each into the first row that has room for it); "wrap" (concatenated and cut at the
                                   ends of rows: no padding but at the end of the last row)
          long_documents           what happens to a document that is longer than a row: "split" (it becomes rows that
                                   it fills, and a document of the rest: no token is lost); "truncate" (its first
                                   tokens fill a row, and the others are lost); "drop" (it is in no row)
          outputs                  the fields of a row, in this order: "tokens" ([length], `pad` after the documents);
                                   "labels" ([length]: the token that follows in the document, `ignore` where none
                                   does; see `shift_labels`); "positions" ([length]: 0, 1, 2 … from the beginning of
                                   each document; 0 in the padding); "segment_ids" ([length]: 1, 2, 3 … for the
                                   documents of the row; 0 in the padding); "loss_mask" (u8 [length]: 1 where there is
                                   a label); "cu_seqlens" (i32 [n + 2]: where each document begins in the row, and the
                                   row's length as often as needed; the padding counts as a document, and n is
                                   `max_documents_per_row`, or the most that a row has); "max_seqlen" (i32 []: the
                                   longest of these documents)
          dtype                    type of tokens, labels, positions and segment_ids: i32 or i64
          pad                      the token of the padding
          ignore                   the label of tokens that have none, which losses ignore
          shift_labels             whether a token's label is the token that follows it; otherwise each token is its
                                   own label, and the first one of a document has none: for models that shift labels
                                   themselves, as Hugging Face's do
          labels_across_documents  whether the last token of a document has the first one of the next document in the
                                   row as its label
          label_mask               a field of the source with an integer for each token, 0 where the token is no label
                                   (a prompt, what the user says in a chat): its label is then `ignore`, and its
                                   loss_mask 0; without a name all tokens are labels
          max_documents_per_row    documents of a row that cu_seqlens has room for, by default as many as the fullest
                                   row has; data sets that are mixed need the same number
          seed                     seed of a random order in which documents are packed, by default their own; epochs
                                   shuffle the rows, and each row keeps its documents
          field                    the field of the source, integers of shape [?]

        Errors   ValueError  another operation stands before it; a length below 1; a type other than i32 and i64; no
                             outputs, or one twice; no such field; wrap with documents that are not to be split
                 Error       a document whose length is not known or damaged; a row with more documents than
                             max_documents_per_row
        """

    def seed(self, seed: int) -> Dataset:
        """
        Makes `seed` the seed of every random operation in this plan that has none of its own.
        """

    def shuffle(self, *, buffer: int | None = None, seed: int | None = None, reshuffle_each_epoch: bool = True) -> Dataset:
        """
        Puts the samples in a random order; after batch, the batches.

        Options
          buffer                samples in tf.data's window; by default a uniform permutation of the whole epoch, in
                                O(1) memory
          seed                  seed of the random numbers, by default the plan's (Dataset.seed); without that, the
                                loader draws one
          reshuffle_each_epoch  whether each epoch has random numbers of its own

        Errors   ValueError  buffer = 0, or a whole shuffle of an endless plan
        """

    def repeat(self, times: int | None = None) -> Dataset:
        """
        Passes over the samples `times` times, by default endlessly. After batch, every pass has its own remainder.
        """

    def take(self, count: int) -> Dataset:
        """Keeps the first `count`, as in tf.data."""

    def skip(self, count: int) -> Dataset:
        """Keeps all but the first `count`, as in tf.data."""

    def shard(self, shards: int, index: int) -> Dataset:
        """
        Keeps the positions p with p % `shards` == `index`.

        Errors   ValueError  shards below 1, or an index outside [0, shards)
        """

    def repeat_each(self, times: int) -> Dataset:
        """
        Repeats every sample `times` times in a row, each time with random numbers of its own (SampleId.draw), so with
        another crop: repeated augmentation. `shuffle().repeat_each(3).take(n)` are n samples an epoch, of a third of
        the images.

        Errors   ValueError  times < 1; a stream
        Source   Hoffer et al.: Augment Your Batch (CVPR 2020); DeiT's RASampler
        """

    def select(self, positions: Sequence[int] | numpy.ndarray) -> Dataset:
        """
        Keeps the `positions` in this list, in its order, as PyTorch's Subset. One that comes several times gets
        random numbers of its own each time (SampleId.draw), so another crop. After batch, a batch that comes again is
        the same one.

        Errors   ValueError  one of them does not exist
        """

    def sample(self, weights: Sequence[float] | numpy.ndarray, *, count: int | None = None, seed: int | None = None, reshuffle_each_epoch: bool = True) -> Dataset:
        """
        Draws with replacement, position p with a probability of `weights`[p] over the sum of all, as PyTorch's
        WeightedRandomSampler. Each draw of a sample has random numbers of its own (SampleId.draw), so another crop.
        After batch, a batch that is drawn again is the same one.

        Options
          count                 how many are drawn; by default as many as there are samples
          seed                  seed of the random numbers, by default the plan's (Dataset.seed); without that, the
                                loader draws one
          reshuffle_each_epoch  whether each epoch has random numbers of its own

        Errors   ValueError  not one weight for each position, or none above 0
        """

    def rename(self, names: Mapping[str, str | Sequence[str]]) -> Dataset:
        """
        Fields of the source under other names, with the same bytes: so that two sources fit beside each other (zip),
        or, under two names, so that two transforms take the same image. What is not named keeps its name. Must come
        right behind the source.

            photos, masks = ps.image_folder("photos"), ps.image_folder("masks")
            ps.zip([photos, masks.rename({"image": "mask", "label": "mask_label"})])

        Under several names: {"image": ("image", "second")}.

        Errors   ValueError  another operation stands before it; no such field; a name that two fields would have
        """

    def batch(self, global_batch: int, *, remainder: Literal['keep', 'drop', 'pad'] = 'keep', uneven: bool = False) -> Dataset:
        """
        Makes global batches of `global_batch` samples, over all devices and processes.

        Options
          remainder  what happens to a last batch that is not full: "keep" (it is delivered short); "drop" (it is left
                     out); "pad" (zeroes fill it up, and one more field, valid u8 [], is 1 for a sample and 0 for a
                     row of zeroes)
          uneven     whether the global batch need not divide over the replicas: some then get one more row, in turn

        Errors   ValueError  a global batch of 0
        """

    def prefetch_to_devices(self, devices: str | Device | Sequence[str | Device], *, split: Literal['scatter', 'round_robin', 'shard_early'] = 'scatter', depth: int = 2) -> Dataset:
        """
        Sends each batch to `devices`, one replica per device; this is the last operation. The same device may be
        named more than once.

        Options
          devices  "auto" (every GPU, or host:0), "host:4" (four host devices), or a list such as ["cuda:0", "cuda:1"]
          split    how a global batch reaches the replicas: "scatter" (replica r gets the contiguous slice r of each
                   global batch); "round_robin" (batches of global_batch / R; batch k goes to replica k mod R);
                   "shard_early" (each replica r has its own order of the samples i with i mod R == r)
          depth    global batches that are ready ahead, in a ring of depth + 1 slots; changes speed and memory only

        Errors   ValueError  no devices, a depth below 1, or a split that does not fit the plan
        """

    def transform_on_device(self, *, field: str = 'image', augment: Sequence[Augmentation] = (), dtype: str = 'f32', layout: Literal['nhwc', 'nchw'] = 'nchw', mean: float | Sequence[float] | numpy.ndarray = (), std: float | Sequence[float] | numpy.ndarray = (), flip: float = 0.0, mixup: float = 0.0, cutmix: float = 0.0, mix_probability: float = 1.0, cutmix_fraction: float = 0.5, classes: int = 0, label_smoothing: float = 0.0, label: str = 'label', erase: RandomErasing = RandomErasing(0.0), on_consumer_stream: bool = False) -> Dataset:
        """
        Converts images for the network on their device: `augment`, then in one pass type, layout, normalisation,
        flip, mixup, cutmix and erasing. It comes after batch. The loader's `digest` is that of the images before it,
        `digest_transformed` that of the images that it makes.

        With mixup or cutmix there are two more fields: mix_row i32 [], the row of the same part that was mixed into
        this one, and mix_weight f32 [], the fraction of this row's own pixels: loss = mix_weight * loss(label) + (1 -
        mix_weight) * loss(label[mix_row]).

        With `classes` there is one more field, target f32 [classes]: the label as probabilities, smoothed, and mixed
        as the image is; torch's cross_entropy takes it in place of labels.

        Options
          field               a field u8 [height, width, channels], 1 to 4 channels, or [views, height, width,
                              channels]
          augment             operations of penstock.augment that come first, for images of 1 or 3 channels: on a GPU
                              in a few passes after the copy, each over all images that need it, on a host device in
                              the thread that made the sample, with the same levels; what is drawn depends on the
                              seed, the epoch, the sample, its draw and its view alone; augment_image draws other
                              numbers
          dtype               f32, f16 or bf16
          layout              the order of the output's dimensions: "nhwc" ([rows, height, width, channels]); "nchw"
                              ([rows, channels, height, width])
          mean                subtracted from pixels of 0 to 1; one per channel or one for all; by default 0
          std                 then divides them; likewise; by default 1
          flip                probability of a horizontal flip, for each image
          mixup               alpha of the Beta distribution of weights; 0: no mixup
          cutmix              likewise; with both, each row takes one of them
          mix_probability     probability that a row is mixed at all
          cutmix_fraction     with both, the fraction of mixed rows that take cutmix
          classes             the number of classes of the field target; 0: no such field
          label_smoothing     the fraction of a target that is spread over all classes
          label               the field of integers from 0 to classes - 1
          erase               a rectangle of each image that is painted over
          on_consumer_stream  on a GPU: the work is on the stream that first waits for the batch, and not on the
                              loader's own

        Shapes   in: `field` u8 [H,W,C]; out: `field` [C,H,W], or [H,W,C] with nhwc. Of views of an image, u8
                 [views,H,W,C], each is flipped and erased by itself, and all are in the output: [views,C,H,W]; they
                 are not mixed
        Errors   ValueError  before batch; no such image; options out of range
        """

    def map(self, transform: Transform | Callable[..., Any], *, outputs: Sequence[FieldSpec] | Mapping[str, tuple[str, Sequence[int | None]]] | None = None, inputs: Sequence[str] | None = None, name: str | None = None) -> Dataset:
        """
        One more transform of every sample: a Transform, or a Python function with its `outputs`,
        see map_function. Before or after shuffle makes no difference.

        Errors  ValueError  a function without outputs; as map_function; a field that it takes is missing
        """

    def loader(self, *, on_fault: Literal['raise', 'replace', 'mask'] = 'raise', max_faults: int | None = None, max_fault_rate: float | None = None, context: InputContext | None = None, mode: Literal['one', 'per_worker', 'per_replica'] = 'one', shards: Literal['data', 'file', 'off'] = 'data', digest: bool = False, digest_transformed: bool = False, decode_on_gpu: bool = False, threads: int = 0, io_threads: int | None = None, retry_attempts: int = 5, retry_initial_backoff: float = 0.05, thread_budget: ThreadBudget | None = None, budget_bytes: int = 0, exchange: Callable[[str], list[str]] | None = None, remote: Any = None) -> Loader:
        """
        The running iterator. Reading starts with its first next(), or with start().

        Options
          on_fault               what happens when a sample is bad: "raise" (next() throws a DataError at the step
                                 that the sample belongs to); "replace" (another sample of the same source takes the
                                 place, the same on every machine); "mask" (the row is zero-filled; the field 'valid'
                                 tells)
          max_faults             more faults than this raise under every policy; counted at delivery, by each process
                                 for itself: where one raises, the program must end the others
          max_fault_rate         a larger fraction of the samples delivered so far raises under every policy, once 100
                                 were delivered
          context                which of the processes this one is; by default as the launcher started it
                                 (InputContext.from_environment)
          mode                   which replicas share one order of the samples; with another mode than `one`, a state
                                 can be restored only with the same number of processes and devices: "one" (one order;
                                 every replica gets its slice of each global batch); "per_worker" (each process has an
                                 order of its own, for its replicas); "per_replica" (each replica has an order of its
                                 own)
          shards                 which samples a separate order covers: "data" (the samples i with i mod n == k, as
                                 Dataset.shard; with mode `one`: slices of the batch); "file" (the samples in the
                                 files f with f mod n == k); "off" (all samples)
          digest                 whether a digest of all fields of the samples is summed, before device transforms
                                 (Loader.digest). It costs a hash of every byte: on the CPU for host devices; on CUDA
                                 devices by a kernel behind the copy, of what has arrived there
          digest_transformed     whether another digest is summed, of what device transforms made
                                 (Loader.transformed_digest), where it lies. On CUDA devices transforms then run on
                                 the loader's own stream, also those with on_consumer_stream
          decode_on_gpu          speed only: whether CUDA devices decode JPEGs whose decode_image knows from its index
                                 where to begin: the CPU only finds the parts of a scan that the crop needs. The CPU
                                 decodes others, and those that need more room packed than their pixels, into the same
                                 batches. The pixels, faults and digests are the same. Takes at most 1 GiB of a GPU's
                                 memory
          threads                speed only: threads that decode; 0: one per core, or as many as thread_budget has
          io_threads             speed only: threads that read records ahead of decoding, in the order's own sequence;
                                 0: decoding threads read for themselves. By default 4 where a source may wait for a
                                 disk, 32 where it reads objects (s3://), else 0
          retry_attempts         how often a read is attempted that fails as networks do; 1: none is repeated
          retry_initial_backoff  wait before the second attempt; it doubles with each further one; in seconds
          thread_budget          speed only: cores that it shares with other loaders; by default none
          budget_bytes           speed and memory only: the most bytes that the loader may hold (order, records in
                                 flight, slots, device buffers); 0: no limit. The ring shrinks to fit, down to two
                                 slots
          exchange               gives every process the texts of all, in the order of their ranks. With one, the
                                 first step, and the first after load_state_dict() or rewind(), compares
                                 Loader.facts() of all processes: where plan, data, seed or position differ, that is
                                 an Error in each that names both. It is called on the consumer's thread, once in
                                 every process
          remote                 workers that make rows of the steps, too, such as penstock.ray.Workers(8): the
                                 batches are the same

        Errors   ValueError  no batch in the plan; options that do not fit it or each other
                 CudaError   a device that cannot be used
                 Error       the byte budget is too small for two slots
        """

    def batch_by_length(self, edges: Sequence[int] | numpy.ndarray, *, tokens: int | None = None, rows: Sequence[int] | numpy.ndarray = (), multiple: int = 1, fields: str | Sequence[str] | Mapping[str, float] = 'tokens', lengths: str = 'lengths', long_samples: Literal['error', 'truncate', 'drop'] = 'error', shuffle: bool = True, seed: int | None = None, reshuffle_each_epoch: bool = True, remainder: Literal['keep', 'drop', 'pad'] = 'keep', uneven: bool = False) -> Dataset:
        """
        Makes global batches of samples of similar lengths, and pads each batch to the longest length of its bucket:
        batches of short samples have many rows, those of long samples few. The samples of each batch are computed
        from the lengths, which are read here, once, by all cores; so any step can be read at once, and is the same on
        any number of devices and processes. Each epoch has the same number of batches. It comes after the source,
        operations that choose among its samples (filter, take, skip, shard, select) and maps; it replaces shuffle,
        and repeat comes after it.

        Options
          edges                 bucket k has the samples that are longer than edges[k - 1] and at most as long as
                                edges[k]; those of a batch are padded to edges[k]
          tokens                at most so many tokens in a global batch, with its padding: a batch of bucket k has
                                tokens / edges[k] rows, rounded down to a multiple of `multiple`
          rows                  instead of `tokens`: the rows of a global batch, one number for each bucket
          multiple              the number of replicas, or a multiple of it, so that each has as many rows of a full
                                batch as the others; for runs that are resumed with other numbers of replicas a
                                multiple of all of them, since the batches depend on it; a bucket's last batch has the
                                rest, and some replicas may have no row of it: where each must have as many,
                                `remainder` is drop or pad
          fields                all fields of shape [?, ...], which are padded, with the numbers to pad with; the
                                first one's length is that of the sample, as its source has it, before any map; of a
                                zip the source that has the field
          lengths               a field i64 [] after the first padded one, with the length before padding; "" for none
          long_samples          what is done with a sample that is longer than the last edge: "error" (an Error that
                                names the first one); "truncate" (it is in the last bucket, and all padded fields are
                                cut off at its edge); "drop" (it is in no batch)
          shuffle               a random order of the samples within each bucket, and of the batches of all buckets;
                                otherwise by length, the shortest first
          seed                  seed of the random numbers, by default the plan's (Dataset.seed); without that, the
                                loader draws one
          reshuffle_each_epoch  whether each epoch has random numbers of its own
          remainder             what happens to a last batch that is not full: "keep" (it is delivered short); "drop"
                                (it is left out); "pad" (zeroes fill it up, and one more field, valid u8 [], is 1 for
                                a sample and 0 for a row of zeroes)
          uneven                whether the global batch need not divide over the replicas: some then get one more
                                row, in turn

        Shapes   a padded field is [rows, edge, ...], both of which differ from batch to batch
        Units    4 bytes of memory a sample
        Errors   ValueError  options that contradict each other; samples that have an order of their own; a field that
                             is not of shape [?, ...]
                 Error       a length that is not known; with long_samples error, a sample that is longer than the
                             last edge
        Faults   a sample that is longer than its bucket, since a map made it longer or its file was changed
        """

    def batch_by_aspect(self, map: Callable[[tuple[int, int]], Transform], shapes: Sequence[tuple[int, int]] | numpy.ndarray, *, sizes: Sequence[tuple[int, int]] | numpy.ndarray, pixels: int | None = None, rows: Sequence[int] | numpy.ndarray = (), multiple: int = 1, max_crop_fraction: float | None = None, max_upscale: float | None = None, unmatched: Literal['error', 'drop'] = 'error', shuffle: bool = True, seed: int | None = None, reshuffle_each_epoch: bool = True, remainder: Literal['keep', 'drop', 'pad'] = 'keep', uneven: bool = False) -> Dataset:
        """
        Makes global batches of images of similar aspects, each batch of one of `shapes`. `map` is called here, once
        with each of them, and makes the last transform of all samples of that bucket, so that a sample has its
        bucket's shape.

        The samples of each batch are computed from `sizes`. Steps, epochs and the operations before and after it are
        as in batch_by_length. transform_on_device may come after it: the images of a batch have one shape.

            data.batch_by_aspect(lambda shape: ps.decode_image(crop=ps.cover_crop(shape), flip=0.5),
                                 ps.aspect_shapes(), sizes=ps.image_sizes(data), pixels=16 << 20)

        Options
          shapes                (height, width) of the images of each bucket, 1 to 4096 of them; aspect_shapes() makes
                                the usual ones; an image is in the bucket whose shape cuts the least of it away, where
                                it is resized so that it just covers the shape: that of the nearest aspect, by the
                                quotient of the two; of several the first
          sizes                 (height, width) of each record of the source, upright, as image_sizes() reads them;
                                one of (0, 0) is in no batch
          pixels                at most so many pixels in a global batch: a batch of bucket k has pixels / (height *
                                width) rows, rounded down to a multiple of `multiple`
          rows                  instead of `pixels`: the rows of a global batch, one number for each bucket
          multiple              the number of replicas, or a multiple of it, so that each has as many rows of a full
                                batch as the others; for runs that are resumed with other numbers of replicas a
                                multiple of all of them, since the batches depend on it; a bucket's last batch has the
                                rest, and some replicas may have no row of it: where each must have as many,
                                `remainder` is drop or pad
          max_crop_fraction     the largest fraction of an image's pixels that may be cut away, from 0 to 1
          max_upscale           the largest factor by which an image may be enlarged to cover its shape, in each
                                direction; with 1 none is; an image that would be enlarged more is in a bucket of a
                                smaller shape, also where that has not the nearest aspect
          unmatched             what is done with an image that these leave no bucket for: "error" (an Error that
                                names the first one); "drop" (it is in no batch)
          shuffle               a random order of the samples within each bucket, and of the batches of all buckets;
                                otherwise by bucket
          seed                  seed of the random numbers, by default the plan's (Dataset.seed); without that, the
                                loader draws one
          reshuffle_each_epoch  whether each epoch has random numbers of its own
          remainder             what happens to a last batch that is not full: "keep" (it is delivered short); "drop"
                                (it is left out); "pad" (zeroes fill it up, and one more field, valid u8 [], is 1 for
                                a sample and 0 for a row of zeroes)
          uneven                whether the global batch need not divide over the replicas: some then get one more
                                row, in turn

        Shapes   [rows, height, width, 3], all of which differ from batch to batch
        Units    12 bytes of memory a sample
        Errors   ValueError  options that contradict each other; another number of sizes than records; samples that
                             have an order of their own; maps whose fields differ in more than extents
                 Error       with unmatched error, an image that no bucket may have
        """

    @property
    def buckets(self) -> BucketSummary | None:
        """
        The buckets of batch_by_length or batch_by_aspect; None where the plan has neither.
        """

    @property
    def size(self) -> int | None:
        """Samples, or after batch global batches; None when endless."""

    def __len__(self) -> int:
        """
        The same.

        Errors  TypeError  the plan is endless, or reads a stream
        """

    @property
    def samples(self) -> int | None:
        """
        Samples in all, also after batch: at the most, where a batch at the end is smaller and `skip` or `take` chose
        among the batches. None when endless.
        """

    @property
    def is_stream(self) -> bool:
        """Whether the records come once, as they arrive."""

    @property
    def batch_size(self) -> int | None:
        """
        Samples in a global batch, at the most; None where there is no batch yet.
        """

    @property
    def remainder(self) -> Literal['keep', 'drop', 'pad'] | None:
        """
        "keep", "drop" or "pad", as batch says it; None where there is no batch yet.
        """

    @property
    def devices(self) -> list[Device]:
        """Those of prefetch_to_devices; empty before it."""

    @property
    def jpeg_index(self) -> JpegIndex | None:
        """
        The index of the plan's first decode_image or decode_views that has one; None where none has. It is no part of
        the plan, and does not travel with it.
        """

    def __bool__(self) -> bool: ...

    @property
    def fields(self) -> list[FieldSpec]:
        """The fields of a sample, after the transforms so far."""

    @property
    def class_names(self) -> list[str]:
        """Where labels have names: label i is class_names[i]."""

    def describe(self) -> str:
        """
        One operation a piece: "image_folder(...).shuffle(seed=7).repeat().batch(256)".
        """

    def __repr__(self) -> str:
        """
        As Python that makes the plan, with penstock as ps; describe() where there is none.
        """

    def to_json(self, *, allow_pickle: bool = False) -> str:
        """
        The plan as JSON, from which from_json makes it again: in another process, or in C++.
        Settings that change only speed (indexes, statistics, threads) and credentials are left out.

        `allow_pickle`: Python functions are pickled into it; C++ does not read these.

        Errors  Error  data in memory, a stream, a Python function; names the operation
        """

    @staticmethod
    def from_json(text: str, *, moved: Mapping[str, str] | None = None, devices: str | Device | Sequence[str | Device] | None = None, index: JpegIndex | None = None, allow_pickle: bool = False) -> Dataset:
        """
        Opens the sources; everything is checked as if the plan were written here.

        `moved`: {"/there": "/here"}, for data that have moved. `devices` replace the plan's own. `index`
        is used by all decode_image of the plan. Unpickling runs code, so it needs `allow_pickle`.

        Errors  Error  not a plan, or one of a newer version; an unknown operation, name or
                       field; a source that is not there or holds other data; names the operation
        """

    def save(self, file: str | os.PathLike[str], *, allow_pickle: bool = False) -> None:
        """
        to_json in a file, which appears when it is complete; lists of more than 1,000 numbers
        (select, sample, filter) become .npy files beside it. penstock-throughput --plan reads it.

        Errors  as to_json; Error  the file cannot be written
        """

    @staticmethod
    def load(file: str | os.PathLike[str], *, moved: Mapping[str, str] | None = None, devices: str | Device | Sequence[str | Device] | None = None, index: JpegIndex | None = None, allow_pickle: bool = False) -> Dataset:
        """
        from_json of a file.

        Errors  as from_json; Error  the file cannot be read
        """

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __copy__(self) -> Dataset: ...

    def __deepcopy__(self, memo: object) -> Dataset: ...

class Stream:
    """Records that arrive one after another, once. For Dataset()."""

class RecordInfo:
    """
    What is known of a record without decoding it. Image folders, tar shards and TFRecord files know labels and
    sizes; other sources need not.
    """

    @property
    def key(self) -> str:
        """its name in the data set; its location where it has no name"""

    @property
    def label(self) -> int | None:
        """the number of its class"""

    @property
    def bytes(self) -> int | None:
        """the bytes that it takes where it is stored"""

class WebDatasetField:
    """One field of the records, made of one member of each sample."""

    def __init__(self, name: str, extensions: str | Sequence[str], *, type: Literal['bytes', 'integer'] = 'bytes', required: bool = True, default_value: int = 0) -> None:
        """
        Options
          name           the field's name
          extensions     what follows the first dot of the member's name, "jpg" or "seg.png", in upper or lower case;
                         of several the first that a sample has is taken
          type           "bytes", the member's bytes as u8 [?], or "integer", its text as i64 [], which is kept in the
                         index and costs no read
          required       whether a sample without it is a fault; if not, the field is then u8 [0], or `default_value`
          default_value  the value of an integer that is missing and not required
        """

    @property
    def name(self) -> str:
        """the field's name"""

    @property
    def extensions(self) -> list[str]:
        """
        what follows the first dot of the member's name, "jpg" or "seg.png", in upper or lower case; of several the first that a sample has is taken
        """

    @property
    def type(self) -> Literal['bytes', 'integer']:
        """
        "bytes", the member's bytes as u8 [?], or "integer", its text as i64 [], which is kept in the index and costs no read
        """

    @property
    def required(self) -> bool:
        """
        whether a sample without it is a fault; if not, the field is then u8 [0], or `default_value`
        """

    @property
    def default_value(self) -> int:
        """the value of an integer that is missing and not required"""

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __repr__(self) -> str: ...

class ExampleField:
    """One field of the records, made of one feature of each Example."""

    def __init__(self, name: str, features: str | Sequence[str], *, dtype: str = 'u8', shape: Sequence[int | None] = (), required: bool = True, default_value: float = 0.0) -> None:
        """
        Options
          name           the field's name
          features       the feature's name; of several the first that an Example has is taken
          dtype          u8 is the one value of a bytes_list, i64 an int64_list, f32 a float_list
          shape          the number of values of i64 and f32, () for one; of u8 the number of bytes, () for all that
                         there are, u8 [?]
          required       whether an Example without it is a fault; if not, the field is then u8 [0], or filled with
                         `default_value`
          default_value  the value of a number that is missing and not required
        """

    @property
    def name(self) -> str:
        """the field's name"""

    @property
    def features(self) -> list[str]:
        """the feature's name; of several the first that an Example has is taken"""

    @property
    def dtype(self) -> str:
        """
        u8 is the one value of a bytes_list, i64 an int64_list, f32 a float_list
        """

    @property
    def shape(self) -> tuple[int | None, ...]:
        """
        the number of values of i64 and f32, () for one; of u8 the number of bytes, () for all that there are, u8 [?]
        """

    @property
    def required(self) -> bool:
        """
        whether an Example without it is a fault; if not, the field is then u8 [0], or filled with `default_value`
        """

    @property
    def default_value(self) -> float:
        """the value of a number that is missing and not required"""

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __repr__(self) -> str: ...

class ArrayField:
    """One array file whose rows are one field of the records."""

    def __init__(self, path: str | os.PathLike[str], *, dtype: str | None = None, shape: Sequence[int | None] = (), offset: int = 0) -> None:
        """
        Options
          path    a .npy file, or a raw one
          dtype   the type of a raw file, one that is not .npy; that of a .npy file is compared with it
          shape   the shape of one row of a raw file, where () makes each element a row; that of a .npy file is
                  compared with it, unless it is ()
          offset  position of the first row in a raw file, in bytes
        """

    @property
    def path(self) -> pathlib.Path:
        """a .npy file, or a raw one"""

    @property
    def dtype(self) -> str | None:
        """
        the type of a raw file, one that is not .npy; that of a .npy file is compared with it
        """

    @property
    def shape(self) -> tuple[int | None, ...]:
        """
        the shape of one row of a raw file, where () makes each element a row; that of a .npy file is compared with it, unless it is ()
        """

    @property
    def offset(self) -> int:
        """position of the first row in a raw file, in bytes"""

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __repr__(self) -> str: ...

def images(path: str | os.PathLike[str], *, labels: str | os.PathLike[str] | None = None, extensions: str | Sequence[str] = ('.jpg', '.jpeg', '.png', '.webp'), max_file_bytes: int = 268435456, follow_symlinks: bool = True) -> Dataset:
    """
    Labelled images: a folder of image files, or tar shards or TFRecord files, which are named by a folder of them
    or a pattern such as "train-{000000..000099}.tar"; each may be after "s3://bucket/". Names alone decide: .tar;
    .tfrecord, .tfrecords, .tfrec, .record or a number such as -00000-of-00010; everything else is a folder of
    images, and the options are for that.

    Options
      labels           for a flat folder: a text file with one 'name label' per line, separated by a comma, a tab
                       or blanks; the labels are all integers, which stay as they are, or all class names, which
                       are sorted and numbered from 0; each image needs exactly one line
      extensions       endings of image files, in upper or lower case, with or without the dot
      max_file_bytes   a larger file is a fault, so that one record cannot take all memory
      follow_symlinks  whether links to files and folders are followed; if not, they are skipped

    Shapes   image u8 [?] (encoded), label i64 [].
    Errors   as image_folder, webdataset or tfrecord
    """

def image_folder(folder: str | os.PathLike[str], *, labels: str | os.PathLike[str] | None = None, extensions: str | Sequence[str] = ('.jpg', '.jpeg', '.png', '.webp'), max_file_bytes: int = 268435456, follow_symlinks: bool = True) -> Dataset:
    """
    The images in a folder. Where its sub-folders have images, each sub-folder that has one, at any depth, is a
    class; classes are numbered in the order of their names, as in torchvision's ImageFolder. Where the images are
    directly in `folder`, it is flat, and all labels are 0 unless `labels` are passed. Names that begin with a dot
    are skipped.

    Records are numbered in the order of the bytes of their paths relative to `folder`, independent of the locale
    and of the order in which the file system lists them. The fingerprint covers the count, these paths and the
    labels, but neither the sizes and contents of the files, since no file is opened for it, nor the name of
    `folder`, which may move. A record's key is its path relative to `folder`; its size comes from one stat, if
    that succeeds.

    With "s3://bucket/prefix" the images are the objects below that prefix, with slashes between folders; the
    fingerprint is that of a local copy. The listing gives their sizes and versions, which are kept in 16 bytes
    for each: an object that is replaced later is a fault.

    Options
      labels           for a flat folder: a text file with one 'name label' per line, separated by a comma, a tab
                       or blanks; the labels are all integers, which stay as they are, or all class names, which
                       are sorted and numbered from 0; each image needs exactly one line
      extensions       endings of image files, in upper or lower case, with or without the dot
      max_file_bytes   a larger file is a fault, so that one record cannot take all memory
      follow_symlinks  whether links to files and folders are followed; if not, they are skipped

    Shapes   image u8 [?] (the file's bytes), label i64 [].
    Units    the listing takes the bytes of the files' names and 12 more for each file
    Errors   ValueError  no folder or no extension was passed; max_file_bytes = 0; labels for a folder that has
                         classes
             Error       a folder is missing, cannot be listed, has no image, or has images both directly and in
                         sub-folders; the labels do not fit the images; of s3:// also: a bucket is missing or
                         denied, or its server does not answer
    Faults   the file is gone, may not be read, is empty, is not a regular file, is larger than max_file_bytes, or
             became shorter meanwhile
    """

def webdataset(shards: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, fields: Sequence[WebDatasetField] = (WebDatasetField('image', ('jpg', 'jpeg', 'png', 'webp')), WebDatasetField('label', 'cls', type='integer')), max_record_bytes: int = 268435456, index_location: Literal['next_to_data', 'cache', 'memory'] = 'next_to_data', index_cache: str | os.PathLike[str] | None = None, index_threads: int = 0) -> Dataset:
    """
    Samples of tar shards in the WebDataset layout, read at random through an index, in the order of the shards
    and, in each, of its members. `shards` is a path, a folder, a pattern such as "train-{000000..000099}.tar", or
    a list of these.

    Members are grouped as by the webdataset package: a member's key is its path up to the first dot of the last
    component, and its extension is the rest, in lower case. Folders, links and names like __this__ are skipped,
    and a shard's end ends its last sample. This reads what GNU tar, BSD tar, Python's tarfile and the webdataset
    package write: ustar, pax, GNU long names and sizes; compressed shards are refused. A record takes one read of
    the shard, unless its members are more than 16 KiB apart; the headers of what is read are checked again.

    Damaged data are a fault of the sample that they are in, and no other sample moves:
    - a sample without a required member, with two of them, or with one that is no integer keeps its number and is
      a fault when it is read;
    - after a damaged header the scan continues at the next good one. The sample that lacks a member because of it
      is a fault; if none does, one sample is taken to be lost, and is a fault that has its number;
    - in a shard that is cut off, or empty, the sample in which it ends is a fault. The number of samples missing
      after it is unknown, so the records of later shards have other numbers than with the whole shard, and the
      fingerprint differs.

    A record's key is that of its members, its label the value of the integer field named "label", and its size
    the bytes of the other fields. The fingerprint covers the fields, and the shards' names, sizes and members,
    but neither the folders that they are in nor the contents of the members.

    Options
      fields            the fields of a record, each made of one member
      max_record_bytes  a sample that takes more is a fault, so that one record cannot take all memory
      index_location    where an index is looked for and kept: "next_to_data" (as `<file>.penstock-index` in the
                        file's folder; in the cache where that cannot be written, and for objects in buckets);
                        "cache" (in the cache folder only); "memory" (not kept: each opening scans the files,
                        unless it finds an index in one of the two)
      index_cache       the cache folder; by default $PENSTOCK_CACHE, else $XDG_CACHE_HOME/penstock, else
                        ~/.cache/penstock, else penstock-UID in the temporary folder; the indexes are in `indexes`
                        there
      index_threads     threads that read indexes and scan files; 0: one for each hardware thread, but at least 8,
                        since they mostly wait for storage

    Shapes   by default image u8 [?], label i64 []
    Units    about 20 bytes and the key's length for a sample of an image and a label, in memory and in the index;
             opening takes about 30 ns for each
    Errors   ValueError  no shard, no field, more than 16 fields, a field without a name or an extension, or a
                         name used twice; max_record_bytes = 0
             Error       a shard is missing, cannot be read when it needs to be indexed, is compressed, or changes
                         at that time
    Faults   as above; or the shard is gone, cannot be read, or was changed since; the sample is larger than
             max_record_bytes
    """

def tfrecord(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, fields: Sequence[ExampleField] = (ExampleField('image', ('image/encoded', 'image')), ExampleField('label', ('image/class/label', 'label'), dtype='i64')), max_record_bytes: int = 268435456, verify: bool = True, index_location: Literal['next_to_data', 'cache', 'memory'] = 'next_to_data', index_cache: str | os.PathLike[str] | None = None, index_threads: int = 0) -> Dataset:
    """
    tf.train.Examples of TFRecord files, read at random through an index, in the order of the files and, in each,
    of its records. `files` is a path, a folder, a pattern, or a list of these; in a folder those files are taken
    whose names end in .tfrecord, .tfrecords, .tfrec or .record, or in -00000-of-00010. This reads what TensorFlow
    writes without compression. Features that no field names are skipped.

    Damaged data are a fault of their record, and no other record moves:
    - a record whose checksum is wrong, that is no Example, lacks a required feature, or has another kind or
      number of values keeps its number and is a fault when it is read;
    - after a damaged length the scan continues at the next good one, and the bytes between are one record, which
      is a fault;
    - in a file that is cut off the record in which it ends is a fault. The number of records missing after it is
      unknown, so the records of later files have other numbers than with the whole file, and the fingerprint
      differs. An empty file has no records.

    A record's key is "<file's name>:<number in the file>", its label the value of the field named "label" if that
    is one i64 (it is kept in the index). The fingerprint covers the fields, the files' names and sizes, and the
    records' lengths, but neither the folders that they are in nor the contents of the records.

    Options
      fields            the fields of a record, each made of one feature
      max_record_bytes  a larger record is a fault, so that one record cannot take all memory
      verify            whether a record's checksum is compared when it is read, which takes about 0.15 ms for
                        each MB
      index_location    where an index is looked for and kept: "next_to_data" (as `<file>.penstock-index` in the
                        file's folder; in the cache where that cannot be written, and for objects in buckets);
                        "cache" (in the cache folder only); "memory" (not kept: each opening scans the files,
                        unless it finds an index in one of the two)
      index_cache       the cache folder; by default $PENSTOCK_CACHE, else $XDG_CACHE_HOME/penstock, else
                        ~/.cache/penstock, else penstock-UID in the temporary folder; the indexes are in `indexes`
                        there
      index_threads     threads that read indexes and scan files; 0: one for each hardware thread, but at least 8,
                        since they mostly wait for storage

    Shapes   by default image u8 [?], label i64 []; views of bytes are not aligned
    Units    about 7 bytes for a record and 2 for its label, in memory and in the index
    Errors   ValueError  no file, no field, more than 16 fields, a field without a name or a feature, a name used
                         twice, a type or shape that no feature has; max_record_bytes = 0
             Error       a file is missing, cannot be read when it needs to be indexed, is compressed, or changes
                         at that time
    Faults   as above; or the file is gone, cannot be read, or was changed since; the record is larger than
             max_record_bytes
    """

def token_files(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, dtype: str | None = None, document_end: int | None = None, offset: int = 0, index_location: Literal['next_to_data', 'cache', 'memory'] = 'next_to_data', index_cache: str | os.PathLike[str] | None = None, index_threads: int = 0) -> Dataset:
    """
    Documents of token files: raw (nanoGPT's train.bin), .npy of one dimension, or with llm.c's header of 1,024
    bytes (both of its versions: u16 and u32); the first bytes of a file decide. A record is a document, and a
    view into the mapped file. A folder stands for its *.bin and *.npy files. Go on with blocks or pack.

    An index keeps the ends of documents; one that was made with another document_end, dtype or offset is
    replaced. A file must not become shorter while it is mapped, as in arrays.

    Options
      dtype           any integer type, of raw files; by default u16, as nanoGPT writes them; a .npy file and one
                      with llm.c's header have theirs, which is compared with it
      document_end    the token that ends a document, such as 50256 for GPT-2, and belongs to it; the files are
                      read once, by all cores, to find them; by default each file is one document
      offset          bytes before the tokens of a raw file
      index_location  where an index is looked for and kept: "next_to_data" (as `<file>.penstock-index` in the
                      file's folder; in the cache where that cannot be written, and for objects in buckets);
                      "cache" (in the cache folder only); "memory" (not kept: each opening scans the files, unless
                      it finds an index in one of the two)
      index_cache     the cache folder; by default $PENSTOCK_CACHE, else $XDG_CACHE_HOME/penstock, else
                      ~/.cache/penstock, else penstock-UID in the temporary folder; the indexes are in `indexes`
                      there
      index_threads   threads that read indexes and scan files; 0: one for each hardware thread, but at least 8,
                      since they mostly wait for storage

    Shapes   tokens, of the files' type, [?].
    Units    4 bytes a document in the index, or 5 from 2^32 tokens on; 20 more while it is made
    Errors   ValueError  no integer type; an offset that is no multiple of its size, or into a file with a header;
                         a document_end that the type cannot have
             Error       a file cannot be opened, is cut short, has another type than `dtype` or the first file,
                         or a part of a token at its end
    """

def megatron(prefixes: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Dataset:
    """
    Sequences of Megatron-LM's and NeMo's indexed data sets: for each path, `path.bin` has the tokens, and
    `path.idx` has the place of each sequence. A record is a sequence, which is a document unless it was
    preprocessed with --split-sentences, and a view into the mapped file. A path may end in .bin or .idx; a folder
    stands for its *.idx files. Go on with pack or blocks.

    Source   megatron/core/datasets/indexed_dataset.py, version 1 of the format
    Shapes   tokens, of the files' type, [?].
    Errors   ValueError  no path
             Error       a file cannot be opened; an index is of another kind, is cut short, or has a type that is
                         no integer, or another than the first
    Faults   its sequence is beyond the end of its file
    """

def documents(tokens: Any, offsets: Sequence[int] | numpy.ndarray) -> Dataset:
    """
    Documents in memory: document i has the elements offsets[i] to offsets[i + 1] of `tokens`, as Arrow stores
    lists. The rows of `tokens` are single numbers. Nothing is copied, so do not change the tokens meanwhile.

    `tokens` is a numpy array of one dimension; the field is called tokens.

    Shapes   a field with the name of `tokens`, of their type, [?]
    Errors   ValueError  no offsets; offsets that fall, do not begin at 0, or end beyond the tokens; rows that are
                         no single numbers
    """

def arrays(fields: Mapping[str, str | os.PathLike[str] | ArrayField]) -> Dataset:
    """
    Rows of array files, one row a sample. The files are mapped, not read: a record's fields are views into the
    mapping, and all processes share the system's page cache. (Rows of a raw file that are not aligned for their
    type are copied.) .npy files, versions 1 to 3, are recognised by their first bytes; bool becomes u8.

    A file must not become shorter while it is mapped: its size is checked here, but a row that is cut off later
    ends the process with SIGBUS, as with every mapping. Replace a file by renaming another over it, which leaves
    the mapped one as it is.

    `fields` are paths or ArrayFields by name: {"x": "x.npy", "y": "y.npy"}.

    Shapes   as in the files, without the first axis.
    Errors   ValueError  no fields, a name missing or used twice, a raw row without bytes, an offset into a .npy
                         file
             Error       a file cannot be opened, is cut short, has another type or shape than its field, is
                         big-endian, Fortran-ordered, has objects or rows without elements, or has another number
                         of rows than the first
    """

def memory(columns: Mapping[str, Any]) -> Dataset:
    """
    Rows of arrays in memory, one row a sample. Nothing is copied, so do not change the arrays meanwhile. Rows may
    overlap, as in a window that slides over tokens.

    `columns` are arrays by name, {"x": x, "label": y}: of numpy, or what numpy makes arrays of; bool becomes u8.
    A dtype that penstock does not have, or rows that are not dense in memory, are a ValueError. Rows of
    numpy.lib.stride_tricks.sliding_window_view(tokens, 1025), of a mapped file, are windows that overlap.

    Shapes   as the arrays, without the first axis.
    Errors   ValueError  no columns, a name missing or used twice, a row without a fixed number of bytes, bytes
                         that are not whole rows, or columns of different lengths
    """

def synthetic_images(count: int = 1000, *, seed: int = 0, classes: int = 10, cache: str | os.PathLike[str] | None = None, threads: int = 0, progress: Callable[[int, int], object] | None = None) -> Dataset:
    """
    Generated photographs with learnable classes, which are written to a cache folder once. A set appears in the
    cache when it is complete: what a killed process left is removed, and processes that make the same set at the
    same time use one.

    The images vary as ImageNet's do: mostly 500x375, a few small and a few of several megapixels, about 110 KB on
    average; quality 75 to 98, 4:4:4, 4:2:0 and 4:2:2, some grey, some progressive. A class is a colour and a
    texture that survive cropping, flipping and shrinking to 32x32.

    Options
      count     number of images
      seed      other seeds give other images of the same classes: train on one seed, validate on another
      classes   image i is of class i % classes; up to about 16 classes are easy to distinguish
      cache     the folder for all generated sets; by default $PENSTOCK_CACHE, else $XDG_CACHE_HOME/penstock, else
                ~/.cache/penstock, else penstock-UID in the temporary folder
      threads   threads that write; 0: one for each hardware thread; the images do not depend on it
      progress  called with the number of images that are written and that of all, about ten times a second and at
                the end, on the calling thread; with 0 while another process makes the same set; not where the set
                is there already; an exception from it ends the work

    Shapes   image u8 [?] (encoded), label i64 [].
    Units    about 110 KB of disk and 10 ms of one core per image, once
    Errors   ValueError  count or classes is 0, or threads is negative
             Error       the cache cannot be written, or has no room; a folder of another kind has the name of the
                         set; images have been removed from the set since
    """

class QueueStats:
    """A queue in numbers."""

    @property
    def pushed(self) -> int:
        """records, so far"""

    @property
    def read(self) -> int:
        """records that were read or discarded"""

    @property
    def waiting(self) -> int:
        """records that were pushed and not read"""

    @property
    def waiting_bytes(self) -> int:
        """their bytes"""

    @property
    def blocked_producers(self) -> int:
        """producers that wait now"""

    @property
    def blocked_s(self) -> float:
        """seconds that all producers together have waited"""

class Queue(Stream):
    """
    A queue that any number of threads push into while one loader reads. What was pushed before close() is
    delivered; nothing is lost or doubled. Several records pushed by one thread arrive in its order, and blocked
    threads are let in in the order in which they came.

    Threads  any of it from any thread.
    Owns     a push copies the record; its views may go as soon as it returns.
    """

    def __init__(self, fields: Sequence[FieldSpec] | Mapping[str, tuple[str, Sequence[int | None]]], *, capacity: int = 1024, max_bytes: int = 268435456, name: str = 'queue') -> None:
        """
        A queue of records with these fields.

            queue = ps.Queue({"observation": ("f32", (None, 4)), "reward": ("f32", ())})
            loader = ps.Dataset(queue).shuffle(buffer=500).batch(32).loader()

        Options
          fields     FieldSpecs, or {name: (dtype, shape)}, such as {"observation": ("f32", (None, 4))}; None is an
                     extent that differs from record to record
          capacity   records that may wait. A loader needs its shuffle buffer plus some batches, and says so if it is
                     too little
          max_bytes  bytes that may wait. Records that the loader is waiting for are accepted beyond it: so a shuffle
                     buffer of large records can fill instead of blocking forever
          name       for messages

        Shapes   as given; an extent of None may differ from record to record.
        Errors   ValueError  no fields, a name missing or used twice, a fixed shape without elements; a capacity or
                             max_bytes of 0
        """

    def push(self, record: Mapping[str, Any] | Sequence[Any], timeout: float | None = None) -> bool:
        """
        Adds a record, {"observation": ..., "reward": ...} or its fields in order; waits while
        the queue is full, at most `timeout` seconds. False, and nothing pushed, if it stays full.

        Owns    a push copies the record.
        Errors  ValueError   a field has another type or shape than it should
                QueueClosed  the queue takes no more
        """

    def close(self, cause: BaseException | None = None) -> None:
        """
        No more records. The consumer gets `cause` after the last one, the producers in
        their QueueClosed. The first close counts.
        """

    def stats(self) -> QueueStats: ...

def generator(fields: Sequence[FieldSpec] | Mapping[str, tuple[str, Sequence[int | None]]], records: Iterable[Mapping[str, Any] | Sequence[Any]], *, name: str = 'generator') -> Dataset:
    """
    Records that a Python iterator makes, one after another, when a batch needs them.

    What it raises ends the stream: the consumer gets it after the last record. A stream comes
    once: no repeat, no whole shuffle, no resume.

    Options
      fields  FieldSpecs, or {name: (dtype, shape)}, such as {"observation": ("f32", (None, 4))}; None is an
              extent that differs from record to record
      name    for messages

    Threads  the iterator is used by one thread at a time, with the GIL.
    Errors   ValueError  no fields, a name missing or used twice
    """

class QueueServerStats:
    """The clients of a QueueServer."""

    @property
    def connected(self) -> int:
        """clients that are connected now"""

    @property
    def finished(self) -> int:
        """clients that closed"""

    @property
    def lost(self) -> int:
        """clients that left without close()"""

    @property
    def refused(self) -> int:
        """connections that never became clients"""

    @property
    def last_error(self) -> str:
        """why the last one was lost or refused; empty if none was"""

class QueueServer:
    """
    Pushes into a queue what QueueClients in other processes of this machine send:

        queue = Queue(fields)
        with QueueServer(queue, "/tmp/moves.sock", expected_clients=8):
            for step in Dataset(queue).shuffle(buffer=1000).batch(128).loader(): ...

    A record counts once the queue has it; a client that dies in the middle of one loses that one
    only. While the queue is full, clients wait.

    Threads  any of it from any thread.
    Owns     the socket file, which only its owner may use; a dead server's is replaced.
    """

    def __init__(self, queue: Queue, path: str | os.PathLike[str], *, close_when: Literal['explicitly', 'all_finished'] = 'all_finished', expected_clients: int = 1, on_lost_client: Literal['close_queue', 'ignore'] = 'close_queue', max_record_bytes: int = 67108864, max_clients: int = 256) -> None:
        """
        Options
          close_when        when the queue is closed: "explicitly" (never: the program calls Queue.close());
                            "all_finished" (when at least expected_clients connected and all of them have left)
          expected_clients  clients that have to connect before that
          on_lost_client    what happens when a client ends without close(): "close_queue" (with a cause that names
                            it); "ignore" (continue; it counts as finished, and in QueueServerStats.lost)
          max_record_bytes  the largest record, and so what one client can make the server hold besides the queue
          max_clients       connections at a time; each has a thread

        Errors   ValueError  no queue, a limit of 0, or a path that is too long for a socket
                 Error       the path has a living server, or a file that is no socket, or cannot be made
        """

    @property
    def path(self) -> pathlib.Path: ...

    def stats(self) -> QueueServerStats: ...

    def stop(self) -> None:
        """
        Disconnects the clients, and removes the socket file. The queue stays open for others.
        """

    def __enter__(self) -> object: ...

    def __exit__(self, type: object | None, value: object | None, traceback: object | None) -> None: ...

class QueueClient:
    """
    The other end of a QueueServer, in a process that makes records:

        with QueueClient("/tmp/moves.sock", fields) as actor:
            for _ in range(1000):
                actor.push(play())

    At the end of the `with` block it is closed, which says that this client is done. One that ends
    without close(), by an exception for instance, counts as lost: the server then closes the queue or
    continues.

    Threads  any of it from any thread; one push at a time, the others wait.
    """

    def __init__(self, path: str | os.PathLike[str], fields: Sequence[FieldSpec] | Mapping[str, tuple[str, Sequence[int | None]]], *, name: str = 'client', connect_timeout: float = 10.0, unacknowledged: int = 16) -> None:
        """
        Connects, and waits for the server if it is not there yet. `fields` are those of the queue.

        Options
          fields           FieldSpecs, or {name: (dtype, shape)}, such as {"observation": ("f32", (None, 4))}; None is
                           an extent that differs from record to record
          name             for the server's messages, which add the process number
          connect_timeout  how long to wait for the server to start and answer; in seconds
          unacknowledged   records that may be sent to the server before they are acknowledged; 0: a push returns when
                           the queue has its record

        Errors   ValueError   no fields, names missing or used twice, or a path that is too long for a socket
                 Error        no server in time; it speaks another version, has other fields (the message names the
                              first that differs) or no room
                 QueueClosed  its queue takes no more
        """

    def push(self, record: Mapping[str, Any] | Sequence[Any], timeout: float | None = None) -> bool:
        """
        Sends a record, as Queue.push takes it; waits while the queue is full, at most `timeout`
        seconds. False, and nothing pushed, if there is no room. Nothing acknowledged is ever lost.

        Errors  ValueError    a field has another type or shape than it should, or the record is larger than
                              the server takes; nothing was sent. A timeout where unacknowledged is 0
                RuntimeError  after close()
                QueueClosed   the queue takes no more; the message says why
                Error         the server is gone
        """

    def flush(self) -> None:
        """
        Returns when the queue has everything that was pushed.

        Errors  as push
        """

    def close(self, cause: str | None = None) -> None:
        """
        flush(), and says that this client is done; with a `cause`, closes the queue: that is what its
        consumer gets, with this client's name. Does nothing the second time.

        Errors  as push
        """

    @property
    def pushed(self) -> int: ...

    @property
    def acknowledged(self) -> int: ...

    def __enter__(self) -> object: ...

    def __exit__(self, type: object | None, value: object | None, traceback: object | None) -> None: ...

def mix(datasets: Sequence[Dataset], *, weights: Sequence[float] | numpy.ndarray = (), seed: int | None = None, until: Literal['first_exhausted', 'all_exhausted'] = 'first_exhausted') -> Dataset:
    """
    Mixes the samples of several `datasets` by fixed weights, each in its own order. A sample's identity says
    which it came from. Where all that follows is batch, Loader.set_weights may change the weights.

    Options
      weights  one for each data set, which need not add up to 1; by default all are equal
      seed     seed of the random numbers, by default the plan's (Dataset.seed), or that of the first data set
               that has one; without that, the loader draws one
      until    when the mix ends: "first_exhausted" (when the first data set that has a weight has ended);
               "all_exhausted" (when all of them have; the data sets that are left are mixed by their own weights)

    Errors   ValueError  none, one that has a batch, or samples that differ in a field; weights that do not fit
    """

def concatenate(datasets: Sequence[Dataset]) -> Dataset:
    """
    Concatenates the samples of several `datasets`.

    Errors   ValueError  as for mix; an endless one before the last
    """

def zip(datasets: Sequence[Dataset]) -> Dataset:
    """
    Joins record i of each of the `datasets` into one sample with the fields of all; it is as long as the
    shortest. Shuffle and repeat what it returns, so that pairs stay pairs.

    Errors   ValueError  none, one with more than maps in it, or a field name used twice
    """

def image_sizes(dataset: Dataset, *, field: str = 'image', exif: bool = True, zero_if_damaged: bool = False) -> Any:
    """
    Height and width of each record's image, as decode_image shows it upright: for batch_by_aspect. Headers of
    JPEGs, PNGs and WebPs are read, by all cores at once; of files in folders and of objects the first 64 KiB, and
    all of one whose header is longer. Save the result beside the data set: it is the same until the files change.

    Of all records of the dataset's source, whatever the dataset chooses among them: an array of numpy, i32 [records, 2].

    Options
      field            the field with the encoded bytes, u8 [?]
      exif             as decode_image has it: the size after turning it upright; else as stored
      zero_if_damaged  whether an image that cannot be read, or has no header, has the size 0x0, and is in no
                       batch of batch_by_aspect; else the first one is an error. Memory that is out is an error in
                       either case

    Memory   8 bytes a record
    Errors   ValueError  no such field, or one that does not hold encoded images
             Error       an image that cannot be read, or has no header; names the first one
    """

def aspect_shapes(*, pixels: int = 1048576, multiple: int = 64, ratio: float | tuple[float, float] = (0.5, 2.0)) -> list[tuple[int, int]]:
    """
    (height, width) of shapes with about the same number of pixels, from the highest to the widest: for each
    width, and for each height, the largest other side.

    Options
      pixels    at most so many pixels in a shape
      multiple  height and width are multiples of it
      ratio     width / height; a number, or (low, high) to draw from

    Errors   ValueError  no such shape, or more than 4096 of them; a range that is empty or not positive
    Source   the buckets of NovelAI's diffusion (2022), as kohya's sd-scripts makes them (make_bucket_resolutions)
    """

class RowBytes:
    """
    Made rows, as they travel: memoryview(rows), bytes(rows), for RowTask.finish.
    """

    def __len__(self) -> int: ...

class RowTask:
    """
    Some rows of one device's slice of a step, for somebody who makes them elsewhere. One that
    is dropped without being finished gives them back, and others make them.

    Threads  any
    """

    @property
    def step(self) -> int: ...

    @property
    def replica(self) -> int: ...

    @property
    def first_row(self) -> int:
        """Of the global batch."""

    @property
    def rows(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """About what RowMaker.make will return."""

    @property
    def request(self) -> bytes:
        """What RowMaker.make takes: 24 bytes a row."""

    @property
    def is_wanted(self) -> bool:
        """
        Whether anybody waits for the rows: not once they are finished, nor after stop, rewind,
        load_state_dict or set_weights of the loader.
        """

    def finish(self, made: Any) -> bool:
        """
        Copies the rows to their place; they were the batch's last ones, it is ready. False where nobody
        wanted them any longer.

        Errors  Error  these are other rows; says what differs. The task is as it was.
        """

    def fail(self, error: BaseException) -> None:
        """The loader raises this at the step."""

    def give_back(self) -> None:
        """
        Others make the rows, as if this were dropped: they are not wanted here any longer.
        """

    def __repr__(self) -> str: ...

class RowTasks:
    """
    The rows of a loader that somebody may make elsewhere: Loader.row_tasks(). Does not keep the loader.

    Threads  any
    """

    @property
    def is_gone(self) -> bool:
        """
        Whether the loader was dropped. After stop it may go on, so then it is not gone.
        """

    @property
    def settings(self) -> str:
        """
        What a RowMaker needs to know besides the plan.

        Errors  Error  the plan reads a stream
        """

    def take(self, rows: int, timeout_s: float) -> RowTask | None:
        """
        Rows that are not made yet, `rows` at the most; the loader's threads make the others. Waits until
        there are some; None when the time is over, so also after the end of the data.

        Errors  ValueError  rows is 0
        """

    def let_threads_make_rows(self, may: bool) -> None:
        """
        Whether the loader's own threads make rows, too; they do until this says otherwise.
        """

class RowMaker:
    """
    Makes rows for loaders of the same plan in other processes, with threads of its own.

    `settings`: those of Loader.row_tasks(). `threads`: 0 for one per core; `io_threads` as for Dataset.loader.

    Threads  make from any number; the earliest step comes first
    Errors   Error  the plan, its data or the version of penstock differ from the loader's: says what
    """

    def __init__(self, plan: Dataset, settings: str, *, threads: int = 0, io_threads: int | None = None) -> None: ...

    def make(self, request: Any) -> RowBytes:
        """
        The rows that RowTask.request asks for. Waits without the GIL. What is wrong with a sample is told
        where the loader delivers it.

        Errors  Error  no request, or one for another plan
        """

class Communicator:
    """
    One process's end of a group of processes, made by connect().

    Every process makes the same calls in the same order; one that does not is an error that names
    it, as is one that is dead or late. After an error or Ctrl-C a communicator cannot be used again:
    later calls raise the same error. f16 and bf16 are summed in f32; on the host values are added in
    the order of the ranks, so that results are the same in every run.

    Threads  one at a time. Waiting releases the GIL, and Ctrl-C ends it. Not after a fork.
    Errors   SyncError   a peer died, timed out, ended, or made another call; names it
             ValueError  not memory that can be written to, or on another device; nothing was sent
    """

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int:
        """How many processes there are."""

    @property
    def device(self) -> Device:
        """Where the memory of its calls lies."""

    @property
    def transport(self) -> str:
        """"gloo", "mpi", "nccl"; "none" in a world of one."""

    def all_reduce(self, data: Any, op: Literal['sum', 'product', 'min', 'max', 'mean'] = 'sum', stream: int | None = None) -> None:
        """
        `data` becomes the reduction of all processes' data, in place, in every process.

        Shapes  any, with as many elements in every process: a dense array or tensor.
        Stream  on a CUDA device queued on `stream`, by default torch's current one.
        """

    def broadcast(self, data: Any, root: int = 0, stream: int | None = None) -> None:
        """`data` becomes that of the process `root`, in place, in every process."""

    def exchange(self, text: str) -> list[str]:
        """
        The texts of all processes, in the order of their ranks. Over "gloo" and "mpi".
        """

    def check(self) -> None:
        """
        Raises what has broken the communicator, if anything has.

        On GPUs calls return before they are done, and what a dead process leaves behind is garbage: call this when the stream is done,
        before results are kept (a checkpoint, a score).

        Errors  SyncError, NcclError, CudaError
        """

    def barrier(self) -> None:
        """Returns when every process has called it."""

    def __repr__(self) -> str: ...

def require_agreement(exchange: Callable[[str], list[str]], facts: Mapping[str, str]) -> None:
    """
    Compares facts of all processes, which would otherwise train on other data, or wait for each
    other. `exchange` gives every process the texts of all, in the order of their ranks:

        group = connect()
        require_agreement(group.exchange, loader.facts() | {"learning rate": str(rate)})

    Errors  Error  in every process: each fact that differs, with its values and who has them
    """

def transports() -> list[str]:
    """The transports in this build: of "gloo", "mpi" and "nccl"."""

def connect(transport: Literal['auto', 'gloo', 'mpi', 'nccl'] = 'auto', *, device: str | Device | None = None, file: str | os.PathLike[str] | None = None, address: str | None = None, rank: int | None = None, world: int | None = None, timeout_s: float = 300.0, join_timeout_s: float = 60.0, run_id: str = '', secret: str = '', any_order: bool = False) -> Communicator:
    """
    Finds the other processes of this run, and returns when all have joined.

    By default they are the launcher's (torchrun, mpirun or srun), and meet at MASTER_ADDR and
    MASTER_PORT; or through a shared file, or at "host:port" of the process of rank 0. A process
    that no launcher started is a world of one: it connects to no other process and copies nothing.

    `transport`   "auto": "nccl" for a CUDA device, else "gloo". Over "mpi" its launcher says who takes
                  part.
    `device`      where the gradients lie; by default the host, for "nccl" the GPU of the local rank.
    `rank, world` of this process; by default the launcher's.
    `timeout_s`   how long a call waits for the others before an error names those that are late;
                  `join_timeout_s` how long to wait for them to join. A machine that answers nothing for
                  `timeout_s` is taken for dead.
    `run_id`      processes of another run are rejected; by default the launcher's, and PENSTOCK_RUN_ID.
    `secret`      what only this run's processes know, 16 characters at least: keeps strangers out of the
                  meeting at an address, not out of the connections of Gloo, MPI or NCCL. By default
                  PENSTOCK_SECRET, or what the file PENSTOCK_SECRET_FILE holds. It is not sent; what is sent
                  is not encrypted. Without one, process 0 may give a RuntimeWarning. With `file`, neither
                  this nor `run_id` is used.
    `any_order`   fewer messages for sums, means and products of up to 1 MiB, in another order of addition: the
                  last bits of floats then depend on the number of processes; they are the same in all
                  processes and in every run. Not for 16-bit floats. Set the same value in every process.

    Errors  Error       processes did not join (names them); another run at that address; a transport
                        that this build lacks; says what to do
            NcclError   NCCL cannot be found
            ValueError  arguments that contradict each other
    """

class GradientSync:
    """
    Takes gradients in as the backward pass produces them, packs them into buckets, reduces bucket after
    bucket in the reverse order of the list, and puts the results back in place.

        sync = GradientSync([weight_grad, bias_grad], connect())
        for batch in loader:
            ...                       # writes both gradients
            sync.ready(1)             # the last layer's is there first
            sync.ready(0)
            sync.wait()               # now both hold the mean over all processes

    Every process makes one with the same list; a difference is an error that names both processes and
    the gradient. A process without rows still takes part: where `combine` counts rows its
    gradients may hold anything, elsewhere it must write zeros.

    Gradients that are contiguous in memory, as in one flat buffer, are reduced in place, without
    packing. A single process copies nothing.

    Threads  one at a time, and one of its own which packs and reduces (on the host). Waiting releases
             the GIL; Ctrl-C ends it, and with it the group.
    Owns     keeps the gradients' memory. It must stay where it is: with torch, zero gradients by
             zero_grad(set_to_none=False).
    Errors   SyncError  a peer died, timed out, ended, or has other gradients; names it; so do later calls
    """

    def __init__(self, gradients: Sequence[Any] | Mapping[str, Any], communicator: Communicator | None = None, *, combine: Literal['sum', 'mean', 'row_sums', 'row_means'] = 'mean', micro_steps: int = 1, wire: Literal['f16', 'bf16'] | None = None, bucket_bytes: int = 26214400, bucket_count: int | None = None) -> None:
        """
        A collective call. `gradients` are dense arrays or tensors (numpy, torch, or any with __dlpack__),
        on the communicator's device; a mapping gives them names for messages.

        `communicator`  by default none is needed: a world of one.
        `combine`       over R processes and K micro-steps. "sum"; "mean" divides it by R · K; "row_sums":
                        each gradient is a sum over rows, and the sum is divided by the rows of all;
                        "row_means": each is a mean over rows, and weighs as many as it has.
        `micro_steps`   whose gradients are added up before they are exchanged.
        `wire`          f16 or bf16: wider floating gradients are sent as this type.
        `bucket_bytes`, `bucket_count`  limits of a bucket, which affect speed alone.

        Errors  ValueError  no gradients, a limit of 0, memory that cannot be written to or lies elsewhere;
                            no communicator in a launcher's process
                SyncError   another process has another list or other options
        """

    def begin(self, rows: int) -> None:
        """
        The number of rows of this micro-step, before its first ready(); required where `combine`
        counts rows.

        Errors  RuntimeError  `combine` counts none, or a gradient is ready already
        """

    def ready(self, index: int, stream: int | None = None) -> None:
        """
        Gradient `index` of the list is complete, and may not be touched until wait() has returned.

        Stream  on a CUDA device: complete after the work queued on `stream` so far, by default torch's.
        Errors  IndexError    no such gradient
                RuntimeError  it was ready before in this micro-step, or begin() is missing
        """

    def wait(self, stream: int | None = None) -> bool:
        """
        Ends the micro-step. True: it was the last of its round, and the gradients hold the result.

        Stream  on a CUDA device for what is queued on `stream` from now on; the host does not wait.
        Errors  RuntimeError  gradients were not ready; names them
        """

    def check(self) -> None:
        """
        Raises what has broken the exchange, if anything has: call it when the stream is done, before gradients are kept.

        Errors  SyncError, NcclError, CudaError
        """

    def __len__(self) -> int:
        """Of the list."""

    @property
    def names(self) -> list[str]: ...

    @property
    def buckets(self) -> list[list[int]]:
        """
        The indices of the gradients in each bucket, in the order in which they are reduced.
        """

    @property
    def packed_bytes(self) -> int:
        """
        Copied into and out of buckets in each round, so 0 where all lie in place.
        """

def broadcast_state(state: Sequence[Any] | Mapping[str, Any], communicator: Communicator | None = None, *, stream: int | None = None) -> None:
    """
    `state` becomes that of process 0 everywhere, in place: weights before the first step, and what is
    not trained, such as a batch normalisation's averages. For torch: broadcast_state(model.state_dict(), ...).

    Errors  SyncError   another process has another list; names both
            ValueError  as GradientSync
    """

__version__: str
def _map_python(function: object, inputs: object, outputs: object, name: str, make_generator: object) -> Transform: ...
def _stop_all() -> None: ...
def _serve_items(items: object, fields: object, socket: int, blocks: object, seed: object) -> None: ...
def _run_through(loader: Loader) -> int: ...
