"""The input of well-known training recipes, as plans:

    import penstock as ps

    train = ps.recipes.imagenet_train(ps.image_folder("train"), 256, augment=[ps.augment.trivial_augment_wide()])
    test = ps.recipes.imagenet_eval(ps.image_folder("val"), 256)

Each takes a Dataset whose samples have encoded images, and returns the plan of its global batches: one
epoch, normalised images f32 [C,H,W]. A plan is a value that prints as the calls that make it: print one,
copy the lines, and change what you like. Go on with .repeat(), .prefetch_to_devices() or .loader().

Threads  any number of threads
Errors   ValueError  a number out of range; a field that the samples do not have; as the calls themselves
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from penstock import augment as pa
from penstock._calls import OF_RECIPES, answering, check_options
from penstock._penstock import (
    ImageView,
    Instances,
    RandomErasing,
    augment_image,
    center_crop,
    crop_image,
    decode_image,
    decode_views,
    letterbox,
    mosaic,
    pad,
    random_crop,
    random_iou_crop,
    random_resized_crop,
    resize_shortest,
    resize_to,
    scale_jitter,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._penstock import Augmentation, Crop, Dataset, JpegIndex

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "imagenet_train",
    "imagenet_eval",
    "resnet_v2_train",
    "deit_train",
    "deit3_train",
    "timm_train",
    "timm_eval",
    "simclr",
    "dino",
    "cifar_train",
    "segmentation_train",
    "segmentation_eval",
    "detection_train",
    "detection_eval",
    "yolo_train",
]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
CIFAR10_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR10_STD = (0.2470, 0.2435, 0.2616)

Filter = Literal["bilinear", "bicubic", "pillow_bilinear", "pillow_bicubic"]


class Mixing(TypedDict, total=False):
    """What the images and labels of a batch go through; see Dataset.transform_on_device."""

    classes: int
    label_smoothing: float
    mixup: float
    cutmix: float
    mix_probability: float
    cutmix_fraction: float
    dtype: str
    layout: Literal["nchw", "nhwc"]
    label: str


@answering(OF_RECIPES)
def imagenet_train(
    data: Dataset,
    batch: int,
    *,
    size: int = 224,
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
    filter: Filter = "bilinear",
    flip: float = 0.5,
    augment: Sequence[Augmentation] = (),
    erase: float = 0.0,
    repeats: int = 1,
    mean: float | Sequence[float] = IMAGENET_MEAN,
    std: float | Sequence[float] = IMAGENET_STD,
    channels: int = 3,
    tolerant: bool = False,
    index: JpegIndex | None = None,
    augment_on_device: bool = False,
    **mixing: Unpack[Mixing],
) -> Dataset:
    """
    A random crop of each image, in a random order; a last batch that is not full is left out.

    `augment`: operations on pixels behind the crop and the flip; with `augment_on_device` where the batch goes, on the
    GPU, which draws other numbers: see docs/augment.md. `erase`: the probability of random erasing.
    `repeats`: repeated augmentation, each image so often one after another, and as many fewer images an epoch.
    `channels`, `tolerant`, `index`: as decode_image takes them; of grey images, mean and std have one number. An index
    makes later epochs faster, and prepared files from the first one on.
    `mixing`: classes, label_smoothing, mixup, cutmix, mix_probability, cutmix_fraction, label, dtype, layout, as
    Dataset.transform_on_device has them. With `classes` batches have the field target f32 [classes].

    Source  torchvision's references/classification
    """
    check_options(imagenet_train, mixing, list(Mixing.__annotations__), OF_RECIPES)
    crop = random_resized_crop(size, scale=scale, ratio=ratio)
    images = _epoch(data, repeats).map(
        decode_image(crop=crop, flip=flip, filter=filter, channels=channels, tolerant=tolerant, index=index)
    )
    return _finished(images, batch, augment, augment_on_device, mean=mean, std=std, erase=erase, mixing=mixing)


@answering(OF_RECIPES)
def imagenet_eval(
    data: Dataset,
    batch: int,
    *,
    size: int = 224,
    resize: int = 256,
    filter: Filter = "bilinear",
    mean: float | Sequence[float] = IMAGENET_MEAN,
    std: float | Sequence[float] = IMAGENET_STD,
    dtype: str = "f32",
    layout: Literal["nchw", "nhwc"] = "nchw",
    channels: int = 3,
    tolerant: bool = False,
    index: JpegIndex | None = None,
) -> Dataset:
    """
    The middle of each image, whose shorter side is `resize` pixels first; in their order, all of them.

    Source  torchvision's references/classification: Resize, CenterCrop
    """
    crop = center_crop(size, resize=resize)
    images = data.map(decode_image(crop=crop, filter=filter, channels=channels, tolerant=tolerant, index=index))
    batches = images.batch(batch)
    return batches.transform_on_device(mean=mean, std=std, dtype=dtype, layout=layout)


@answering(OF_RECIPES)
def resnet_v2_train(
    data: Dataset, batch: int, *, classes: int = 1000, size: int = 176, index: JpegIndex | None = None, augment_on_device: bool = False
) -> Dataset:
    """
    torchvision's recipe for ResNet-50's IMAGENET1K_V2 weights; evaluate with imagenet_eval(resize=232).

    Each row is mixed by mixup or cutmix by itself; there, all rows of a batch are.

    Source  https://pytorch.org/blog/how-to-train-state-of-the-art-models-using-torchvision-latest-primitives
    """
    return imagenet_train(
        data,
        batch,
        size=size,
        augment=[pa.trivial_augment_wide(interpolation="bilinear")],
        erase=0.1,
        repeats=4,
        classes=classes,
        label_smoothing=0.1,
        mixup=0.2,
        cutmix=1.0,
        index=index,
        augment_on_device=augment_on_device,
    )


@answering(OF_RECIPES)
def deit_train(
    data: Dataset, batch: int, *, classes: int = 1000, size: int = 224, index: JpegIndex | None = None, augment_on_device: bool = False
) -> Dataset:
    """
    DeiT's recipe. What is erased becomes the mean; there, noise.

    Source  Touvron et al.: Training data-efficient image transformers (ICML 2021)
    """
    return imagenet_train(
        data,
        batch,
        size=size,
        filter="bicubic",
        augment=[pa.timm_rand_augment("rand-m9-mstd0.5-inc1", interpolation="bicubic", fill=_levels(IMAGENET_MEAN))],
        erase=0.25,
        repeats=3,
        classes=classes,
        label_smoothing=0.1,
        mixup=0.8,
        cutmix=1.0,
        index=index,
        augment_on_device=augment_on_device,
    )


@answering(OF_RECIPES)
def deit3_train(
    data: Dataset, batch: int, *, classes: int = 1000, size: int = 224, index: JpegIndex | None = None, augment_on_device: bool = False
) -> Dataset:
    """
    DeiT III's recipe for ImageNet-1k, with its 3-Augment.

    Source  Touvron, Cord, Jegou: DeiT III (ECCV 2022)
    """
    return imagenet_train(
        data,
        batch,
        size=size,
        filter="bicubic",
        augment=[pa.three_augment(0.3)],
        repeats=3,
        classes=classes,
        mixup=0.8,
        cutmix=1.0,
        index=index,
        augment_on_device=augment_on_device,
    )


@answering(OF_RECIPES)
def timm_train(
    data: Dataset, batch: int, config: Mapping[str, Any], *, index: JpegIndex | None = None, augment_on_device: bool = False
) -> Dataset:
    """
    What timm's train.py makes of its options: `config` has their names, as in the args.yaml that it saves;
    what says nothing of images is passed over.

    Taken: img_size, input_size, scale, ratio, hflip, vflip, color_jitter, color_jitter_prob, grayscale_prob,
    gaussian_blur_prob, aa, reprob, aug_repeats, mixup, cutmix, mixup_prob, mixup_switch_prob, smoothing, num_classes,
    train_interpolation, mean, std. As there, targets are made with mixup or cutmix; else smoothing is the loss's.
    Where img_size, mean, std or crop_pct are null, timm takes those of the model, which are not known here: give them.

    Errors  ValueError  an option that has no equal here; names it
    Source  timm 1.0: train.py, data/transforms_factory.py
    """
    take = _Config(config)
    size = take.size()
    mean, std = take.numbers()
    interpolation = take("train_interpolation", "random")
    if interpolation == "random":
        raise ValueError("timm_train: train_interpolation 'random' draws a filter for each image: set 'bilinear' or 'bicubic'")
    augment = [pa.vertical_flip(take("vflip", 0.0))] if take("vflip", 0.0) else []
    policy = take("aa", None)
    jitters = not policy or policy == "3a"
    jitter = _timm_jitter(config.get("color_jitter", 0.4), take("color_jitter_prob", 1.0)) if jitters else []
    if policy and policy.startswith("rand"):
        augment.append(pa.timm_rand_augment(policy, interpolation=interpolation, fill=_levels(mean)))
    elif policy == "3a":
        one_of_three = pa.random_choice([pa.grayscale(), pa.solarize(128), pa.gaussian_blur(13, (0.1, 2.0))])
        augment += [one_of_three, *jitter]
    elif policy:
        raise ValueError(f"timm_train: aa {policy!r}: expected one that begins with 'rand', or '3a'; give other policies to imagenet_train(augment=...)")
    else:
        augment += jitter
    if take("grayscale_prob", 0.0):
        augment.append(pa.random_apply(take("grayscale_prob", 0.0), [pa.grayscale()]))
    if take("gaussian_blur_prob", 0.0):
        augment.append(pa.random_apply(take("gaussian_blur_prob", 0.0), [pa.gaussian_blur(23, (0.1, 2.0))]))
    mixes = take("mixup", 0.0) > 0 or take("cutmix", 0.0) > 0
    if mixes and not take("num_classes", 0):
        raise ValueError("timm_train: mixup and cutmix mix the targets, too: give num_classes, the model's number of classes")
    if take("reprob", 0.0) > 0 and take("remode", "pixel") != "const":
        raise ValueError("timm_train: remode 'pixel' fills with noise; here, what is erased becomes the mean: set remode 'const'")
    if take("reprob", 0.0) > 0:
        take.refuse("recount", 1)
    take.refuse("in_chans", 3)
    take.refuse("input_img_mode", "RGB")
    take.refuse("naflex_loader", False)
    take.refuse("aug_splits", 0)
    take.refuse("train_crop_mode", "rrc")
    take.refuse("no_aug", False)
    take.refuse("cutmix_minmax", None)
    take.refuse("mixup_mode", "elem", "batch")
    take.refuse("mixup_off_epoch", 0)
    return imagenet_train(
        data,
        batch,
        size=size,
        scale=tuple(take("scale", (0.08, 1.0))),
        ratio=tuple(take("ratio", (3 / 4, 4 / 3))),
        filter=interpolation,
        flip=take("hflip", 0.5),
        augment=augment,
        erase=take("reprob", 0.0),
        repeats=take.whole("aug_repeats", 0) or 1,
        mean=mean,
        std=std,
        classes=take("num_classes", 0) if mixes else 0,
        label_smoothing=take("smoothing", 0.1) if mixes else 0.0,
        mixup=take("mixup", 0.0),
        cutmix=take("cutmix", 0.0),
        mix_probability=take("mixup_prob", 1.0) if mixes else 1.0,
        cutmix_fraction=take("mixup_switch_prob", 0.5),
        index=index,
        augment_on_device=augment_on_device,
    )


@answering(OF_RECIPES)
def timm_eval(data: Dataset, batch: int, config: Mapping[str, Any], *, index: JpegIndex | None = None) -> Dataset:
    """
    As timm_train, for validation: img_size, crop_pct (0.875), interpolation ("bicubic"), mean and std.

    Errors  ValueError  an option that has no equal here; names it
    Source  timm 1.0: data/transforms_factory.py
    """
    take = _Config(config)
    size = take.size()
    mean, std = take.numbers()
    take.refuse("crop_mode", "center")
    return imagenet_eval(
        data,
        batch,
        size=size,
        resize=math.floor(size / (take("crop_pct", None) or 0.875)),
        filter=take("interpolation", "") or "bicubic",
        mean=mean,
        std=std,
        index=index,
    )


@answering(OF_RECIPES)
def simclr(
    data: Dataset,
    batch: int,
    *,
    size: int = 224,
    strength: float = 1.0,
    index: JpegIndex | None = None,
    augment_on_device: bool = False,
) -> Dataset:
    """
    Two views of each image, of colours of this strength (1: the original's) and blurred at random; normalised, which the original is not.

    Shapes  image f32 [2,3,size,size]
    Source  Chen et al.: A Simple Framework for Contrastive Learning (ICML 2020), appendix A
    """
    views = {"image": ImageView(random_resized_crop(size), count=2, flip=0.5, filter="bicubic")}
    jitter = pa.color_jitter(*(_around(1.0, 0.8 * strength),) * 3, (-0.2 * strength, 0.2 * strength))
    operations = [
        pa.random_apply(0.8, [jitter]),
        pa.random_apply(0.2, [pa.grayscale()]),
        pa.random_apply(0.5, [pa.gaussian_blur(min(size // 20 * 2 + 1, 63), (0.1, 2.0))]),
    ]
    return _views(data, batch, views, {"image": operations}, index, augment_on_device)


@answering(OF_RECIPES)
def dino(
    data: Dataset,
    batch: int,
    *,
    size: int = 224,
    local_size: int = 96,
    local_views: int = 8,
    global_scale: tuple[float, float] = (0.4, 1.0),
    local_scale: tuple[float, float] = (0.05, 0.4),
    index: JpegIndex | None = None,
    augment_on_device: bool = False,
) -> Dataset:
    """
    Two large views of each image and several small ones, of one decode. The blur is a Gaussian; there, Pillow's
    approximation by boxes.

    Shapes  global_1 and global_2 f32 [3,size,size], local f32 [local_views,3,local_size,local_size]; none for 0
    Source  Caron et al.: Emerging Properties in Self-Supervised Vision Transformers (ICCV 2021), main_dino.py
    """
    large = ImageView(random_resized_crop(size, scale=global_scale), flip=0.5, filter="bicubic")
    small = random_resized_crop(local_size, scale=local_scale)
    views = {"global_1": large, "global_2": large}
    if local_views != 0:
        views["local"] = ImageView(small, count=local_views, flip=0.5, filter="bicubic")
    colours = [
        pa.random_apply(0.8, [pa.color_jitter((0.6, 1.4), (0.6, 1.4), (0.8, 1.2), (-0.1, 0.1))]),
        pa.random_apply(0.2, [pa.grayscale()]),
    ]
    blur = pa.gaussian_blur(13, (0.1, 2.0))
    operations = {
        "global_1": [*colours, blur],
        "global_2": [*colours, pa.random_apply(0.1, [blur]), pa.random_apply(0.2, [pa.solarize(128)])],
        "local": [*colours, pa.random_apply(0.5, [blur])],
    }
    return _views(data, batch, views, operations, index, augment_on_device)


@answering(OF_RECIPES)
def cifar_train(
    data: Dataset,
    batch: int,
    *,
    size: int = 32,
    padding: int = 4,
    augment: Sequence[Augmentation] = (),
    erase: float = 0.0,
    mean: float | Sequence[float] = CIFAR10_MEAN,
    std: float | Sequence[float] = CIFAR10_STD,
    augment_on_device: bool = False,
    **mixing: Unpack[Mixing],
) -> Dataset:
    """
    Small images that are decoded already, u8 [H,W,C]: a random crop of the padded image, and a flip.

    Source  He et al.: Deep Residual Learning (CVPR 2016), section 4.2
    """
    check_options(cifar_train, mixing, list(Mixing.__annotations__), OF_RECIPES)
    images = data.shuffle().map(crop_image(crop=random_crop(size, padding=padding), flip=0.5))
    return _finished(images, batch, augment, augment_on_device, mean=mean, std=std, erase=erase, mixing=mixing)


@answering(OF_RECIPES)
def segmentation_train(
    data: Dataset,
    batch: int,
    *,
    size: int = 480,
    base: int = 520,
    mask: str = "mask",
    filter: Filter = "bilinear",
    mean: float | Sequence[float] = IMAGENET_MEAN,
    std: float | Sequence[float] = IMAGENET_STD,
    dtype: str = "f32",
    layout: Literal["nchw", "nhwc"] = "nchw",
    tolerant: bool = False,
    index: JpegIndex | None = None,
) -> Dataset:
    """
    Images and the masks of their classes, in a random order; a last batch that is not full is left out.

    The image's shorter side gets half to twice `base` pixels, of which a random part of size x size is shown, or a flipped one. Where
    the image is smaller, the rest is the colour `mean`, and 255 in the mask.
    `mask`: the field of the mask, which becomes i64 [size,size], as torch's losses take it: they leave out 255 by ignore_index=255.
    The other options are those of imagenet_train.

    Source  torchvision's references/segmentation, presets.py; there the rest of an image is black
    """
    _require_data("segmentation_train", data, "penstock.zip([images, masks])")
    crop = resize_shortest(size, sides=(base // 2, base * 2), step=1, longest=0, fill=_levels(_three(mean)))
    images = data.shuffle().map(
        decode_image(crop=crop, flip=0.5, filter=filter, tolerant=tolerant, index=index, masks=mask, mask_dtype="i64")
    )
    return images.batch(batch, remainder="drop").transform_on_device(mean=mean, std=std, dtype=dtype, layout=layout)


@answering(OF_RECIPES)
def segmentation_eval(
    data: Dataset,
    batch: int,
    *,
    size: int = 1040,
    base: int = 520,
    mask: str = "mask",
    filter: Filter = "bilinear",
    mean: float | Sequence[float] = IMAGENET_MEAN,
    std: float | Sequence[float] = IMAGENET_STD,
    dtype: str = "f32",
    layout: Literal["nchw", "nhwc"] = "nchw",
    tolerant: bool = False,
    index: JpegIndex | None = None,
) -> Dataset:
    """
    Each whole image with its mask, in their order.

    The shorter side has `base` pixels, or fewer where the longer one would have more than `size`; it lies in the upper left corner of
    size x size pixels, and the rest of the mask is 255. The other options are those of segmentation_train.

    Source  torchvision's references/segmentation, presets.py, where each batch is one image
    """
    _require_data("segmentation_eval", data, "penstock.zip([images, masks])")
    crop = resize_shortest(size, sides=(base, base), step=1, longest=size, fill=_levels(_three(mean)))
    images = data.map(decode_image(crop=crop, filter=filter, tolerant=tolerant, index=index, masks=mask, mask_dtype="i64"))
    return images.batch(batch).transform_on_device(mean=mean, std=std, dtype=dtype, layout=layout)


@answering(OF_RECIPES)
def detection_train(
    data: Dataset,
    batch: int,
    *,
    preset: Literal["hflip", "multiscale", "detr", "lsj", "ssd", "ssdlite"] = "lsj",
    size: int | None = None,
    boxes: int = 100,
    instances: Instances | None = None,
    filter: Filter = "bilinear",
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    dtype: str = "f32",
    layout: Literal["nchw", "nhwc"] = "nchw",
    tolerant: bool = False,
    index: JpegIndex | None = None,
) -> Dataset:
    """
    Images with the boxes of their instances, such as coco's, in a random order; a last batch that is not full is left out.

    `preset`, all with a flip: "hflip", the shorter side at 800 pixels and the longer one at 1333 at most (size 1333); "multiscale", the
    shorter side at 480 to 800; "detr", the same, of half of the images of a random part; "lsj", large-scale jitter (1024); "ssd", zooms
    out, SSD's crop and colours (300); "ssdlite", SSD's crop (320). Of the first three another `size` scales all of these numbers,
    the image lies in the upper left corner, in grey. The colours of "ssd" are changed in a fixed order, contrast first, and the
    channels are not exchanged.
    `boxes`: the most instances of an image, to which their fields are padded; the field count says how many there are.
    `instances`: by default the fields boxes, keypoints, masks, corners, labels, area, iscrowd, difficult and truncated that the data
    have, with middle for SSD's crop, and with the flip_index of the source. Give it for other names and formats.
    `mean`, `std`: by default levels are from 0 to 1, since torchvision's detection models normalise by themselves.
    `dtype`, `layout`: as Dataset.transform_on_device has them. `filter`, `tolerant`, `index`: as decode_image takes them.

    Source  torchvision's references/detection, presets.py, and GeneralizedRCNNTransform; Carion et al.: DETR (ECCV 2020); Ghiasi et
            al.: Simple Copy-Paste (CVPR 2021); Liu et al.: SSD (ECCV 2016)
    """
    _require_data("detection_train", data)
    sizes = {"hflip": 1333, "multiscale": 1333, "detr": 1333, "lsj": 1024, "ssd": 300, "ssdlite": 320}
    side = _side_of_preset("detection_train", preset, size, sizes)
    fill = _levels(IMAGENET_MEAN)
    is_ssd = preset in ("ssd", "ssdlite")
    if preset == "lsj":
        crop = scale_jitter(side, fill=fill)
    elif is_ssd:
        crop = random_iou_crop(side, fill=fill, zoom_out=0.5 if preset == "ssd" else 0.0)
    else:
        crop = _shortest_of_preset(preset, side)
    moved = instances or _instances_of(data, middle=is_ssd)
    images = data.shuffle().map(decode_image(crop=crop, flip=0.5, filter=filter, tolerant=tolerant, index=index, instances=moved))
    if preset == "ssd":
        jitters = [pa.contrast((0.5, 1.5)), pa.brightness((0.875, 1.125)), pa.saturation((0.5, 1.5)), pa.hue((-0.05, 0.05))]
        images = images.map(augment_image([pa.random_apply(0.5, [jitter]) for jitter in jitters]))
    batches = _padded(images, moved, boxes).batch(batch, remainder="drop")
    return batches.transform_on_device(mean=mean, std=std, dtype=dtype, layout=layout)


@answering(OF_RECIPES)
def detection_eval(
    data: Dataset,
    batch: int,
    *,
    preset: Literal["hflip", "multiscale", "detr", "lsj", "ssd", "ssdlite", "yolo"] = "lsj",
    size: int | None = None,
    boxes: int = 100,
    instances: Instances | None = None,
    filter: Filter = "bilinear",
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    dtype: str = "f32",
    layout: Literal["nchw", "nhwc"] = "nchw",
    tolerant: bool = False,
    index: JpegIndex | None = None,
) -> Dataset:
    """
    Each whole image, with its instances, in their order.

    `preset`: "hflip", "multiscale" and "detr", the shorter side at 800 pixels and the longer one at 1333 at most (size 1333), in the upper
    left corner; "lsj", as large as it fits, in the upper left corner (size 1024); "ssd" (300) and "ssdlite" (320), stretched; "yolo",
    as large as it fits, in the middle, in grey (640).

    The field geometry, i32 [8], says where the image was: x and y of a box in pixels of the file are x * geometry[2] / size + geometry[0]
    and y * geometry[3] / size + geometry[1]. The other options are those of detection_train.

    Source  torchvision's references/detection; Ultralytics' LetterBox
    """
    _require_data("detection_eval", data)
    sizes = {"hflip": 1333, "multiscale": 1333, "detr": 1333, "lsj": 1024, "ssd": 300, "ssdlite": 320, "yolo": 640}
    side = _side_of_preset("detection_eval", preset, size, sizes)
    if preset == "yolo":
        crop = letterbox(side, fill=114)
    elif preset in ("hflip", "multiscale", "detr"):
        crop = _shortest_of_preset("hflip", side)
    else:
        crop = scale_jitter(side, scale=1, fill=_levels(IMAGENET_MEAN)) if preset == "lsj" else resize_to(side)
    moved = instances or _instances_of(data)
    images = data.map(
        decode_image(crop=crop, filter=filter, tolerant=tolerant, index=index, geometry="geometry", instances=moved)
    )
    return _padded(images, moved, boxes).batch(batch).transform_on_device(mean=mean, std=std, dtype=dtype, layout=layout)


@answering(OF_RECIPES)
def yolo_train(
    data: Dataset,
    batch: int,
    *,
    size: int = 640,
    mosaics: float = 1.0,
    mixup: float = 0.0,
    until_epoch: int | None = None,
    scale: tuple[float, float] = (0.5, 1.5),
    translate: float = 0.1,
    flip: float = 0.5,
    hsv: tuple[float, float, float] = (0.015, 0.7, 0.4),
    scaled: bool = True,
    boxes: int = 300,
    instances: Instances | None = None,
    filter: Filter = "bilinear",
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    dtype: str = "f32",
    layout: Literal["nchw", "nhwc"] = "nchw",
    tolerant: bool = False,
    index: JpegIndex | None = None,
) -> Dataset:
    """
    Mosaics of four images with the boxes of their instances, such as yolo's, in a random order; a last batch that is not full is left
    out. The data are a source, and of operations only those that choose among its records, such as split, and seed. They are shuffled
    here; put repeat behind: yolo_train(data.seed(7), 16).repeat(100).

    `mosaics`: how many of the samples are mosaics; the others are one image, in grey. From `until_epoch` on none is a mosaic: epochs
    are those that repeat counts, from 0, so Ultralytics' close_mosaic=10 is until_epoch=90 of repeat(100). `mixup`: how many of the
    mosaics are mixed with a second one.
    `scale`, `translate`: as mosaic takes them; (0.5, 1.5) is Ultralytics' scale=0.5. `hsv`: hue, saturation and value, as
    augment.hsv_jitter takes them.
    `boxes`: the most instances of a sample, to which their fields are padded; the field count says how many there are, and a sample
    with more is a fault. `instances`: by default the fields boxes, keypoints, masks, corners, labels, area, iscrowd, difficult and
    truncated that the data have, in the format of their source, and as in Ultralytics without those of which less than 2 pixels or a
    tenth is left. Give it for other names, and for keypoints of which the source does not say what is left and right: they need
    flip_index, or flip=0.
    `mean`, `std`: by default levels are from 0 to 1. `dtype`, `layout`: as Dataset.transform_on_device has them. `filter`, `scaled`,
    `tolerant`, `index`: as decode_image takes them.

    Source  Ultralytics' defaults of YOLOv8 and later (v8_transforms), without what Albumentations adds where it is installed: blurs,
            grey and contrast, each with a probability of 0.01
    """
    _require_data("yolo_train", data)
    moved = instances or _instances_of(data, min_size=2.0, min_visible=0.1)
    if instances is None and moved.keypoints and not moved.flip_index and flip > 0:
        raise ValueError(
            f"yolo_train: flip={flip} mirrors the keypoints, and which of them are left and right is not known: pass "
            "instances=Instances('boxes', keypoints='keypoints', fields=['labels'], flip_index=[...]), as flip_idx of a data.yaml, or flip=0"
        )
    if not isinstance(hsv, Sequence) or len(hsv) != 3:
        raise ValueError(f"yolo_train: hsv are three numbers, for hue, saturation and value, such as (0.015, 0.7, 0.4), found {hsv!r}")
    images = (
        data.partners(7 if mixup > 0 else 3, probability=mosaics, until_epoch=until_epoch)
        .shuffle()
        .map(
            decode_image(
                crop=mosaic(size, scale=scale, translate=translate, mixup=mixup),
                flip=flip,
                filter=filter,
                scaled=scaled,
                tolerant=tolerant,
                index=index,
                instances=moved,
            )
        )
        .map(augment_image([pa.hsv_jitter(*hsv)]))
    )
    batches = _padded(images, moved, boxes).batch(batch, remainder="drop")
    return batches.transform_on_device(mean=mean, std=std, dtype=dtype, layout=layout)


# ---- parts of several ----


def _require_data(recipe: str, data: object, example: str = "penstock.yolo('data.yaml')") -> None:
    if not hasattr(data, "fields") or not hasattr(data, "partners"):
        raise TypeError(f"{recipe}: data are a Dataset, such as {example}, found {data!r}")


def _side_of_preset(recipe: str, preset: str, size: int | None, sizes: dict[str, int]) -> int:
    if preset not in sizes:
        raise ValueError(f"{recipe}: preset is one of {', '.join(sizes)}, found {preset!r}")
    return sizes[preset] if size is None else size


def _shortest_of_preset(preset: str, size: int) -> Crop:
    """The numbers of torchvision and DETR are for 1333 pixels."""

    def scaled(pixels: int) -> int:
        return max(round(pixels * size / 1333), 1)

    return resize_shortest(
        size,
        sides=(scaled(800 if preset == "hflip" else 480), scaled(800)),
        step=scaled(32),
        longest=size,
        fill=_levels(IMAGENET_MEAN),
        cut=0.5 if preset == "detr" else 0.0,
        cut_sides=(scaled(400), scaled(600)),
        cut_step=scaled(100),
        cut_size=(scaled(384), scaled(600)),
    )


def _three(mean: float | Sequence[float]) -> Sequence[float]:
    return mean if isinstance(mean, Sequence) else [mean] * 3


def _instances_of(data: Dataset, **limits: Any) -> Instances:
    """Those of the fields that coco, yolo and voc have, in the form that the source gives them in."""
    names = [field.name for field in data.fields]
    keypoints = "keypoints" if "keypoints" in names else ""
    fields = [name for name in ("labels", "area", "iscrowd", "difficult", "truncated") if name in names]
    form, normalized, masks, flip_index = cast(Any, data)._form_of_boxes
    return Instances(
        "boxes",
        keypoints=keypoints,
        masks=masks,
        corners="corners" if "corners" in names else "",
        fields=fields,
        format=form,
        normalized=normalized,
        flip_index=flip_index if keypoints else [],
        **limits,
    )


def _padded(images: Dataset, moved: Instances, boxes: int) -> Dataset:
    also = [*(name for name in (moved.keypoints, moved.masks, moved.corners) if name), *moved.fields]
    return images.map(pad(moved.boxes, to=boxes, lengths="count", also=also))


def _epoch(data: Dataset, repeats: int) -> Dataset:
    """A random order. With repeats, as many samples as without, of fewer images."""
    if repeats == 1:
        return data.shuffle()
    if data.size is None:
        raise ValueError("repeats: the data are endless, so an epoch has no number of samples; put repeat behind the recipe")
    return data.shuffle().repeat_each(repeats).take(data.size)


def _finished(
    images: Dataset,
    batch: int,
    augment: Sequence[Augmentation],
    augment_on_device: bool,
    *,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    erase: float,
    mixing: Mixing,
) -> Dataset:
    """Whole batches of cropped images, after what training does to them."""
    if augment and not augment_on_device:
        images = images.map(augment_image(augment))
    return images.batch(batch, remainder="drop").transform_on_device(
        augment=augment if augment_on_device else [],
        mean=mean,
        std=std,
        erase=RandomErasing(erase),
        **mixing,
    )


def _views(
    data: Dataset,
    batch: int,
    views: Mapping[str, ImageView],
    operations: Mapping[str, list[Augmentation]],
    index: JpegIndex | None,
    augment_on_device: bool,
) -> Dataset:
    """Whole batches of several views of each image, after what is done to each."""
    images = data.shuffle().map(decode_views(views, index=index))
    if not augment_on_device:
        for field in views:
            images = images.map(augment_image(operations[field], field=field))
    batches = images.batch(batch, remainder="drop")
    for field in views:
        on_device = operations[field] if augment_on_device else []
        batches = batches.transform_on_device(field=field, augment=on_device, mean=list(IMAGENET_MEAN), std=list(IMAGENET_STD))
    return batches


def _around(centre: float, strength: float) -> tuple[float, float]:
    """As torchvision's ColorJitter takes a number."""
    return (round(max(0.0, centre - strength), 9), round(centre + strength, 9))


def _levels(mean: Sequence[float]) -> tuple[int, int, int]:
    """Of a normalisation's mean, as timm fills."""
    red, green, blue = (min(255, round(255 * value)) for value in mean)
    return (red, green, blue)


def _timm_jitter(given: float | Sequence[float] | None, probability: float) -> list[Augmentation]:
    """Of brightness, contrast and saturation, and perhaps hue; None and 0 are none."""
    if not given:
        return []
    strengths = [float(given)] * 3 if isinstance(given, (int, float)) else list(given)
    if len(strengths) not in (3, 4):
        raise ValueError(f"timm's color_jitter: expected a number, or 3 or 4 of them, found {given}")
    jitter = pa.color_jitter(*(_around(1.0, s) for s in strengths[:3]), *((-s, s) for s in strengths[3:]))
    return [jitter] if probability == 1 else [pa.random_apply(probability, [jitter])]


class _Config:
    """Options by timm's names."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        if not isinstance(config, Mapping):
            raise TypeError(f"config: expected a dict of timm's options, such as yaml.safe_load(open('args.yaml')), found {config!r}")
        self.config = config

    def __call__(self, name: str, default: Any) -> Any:
        value = self.config.get(name)
        return default if value is None else value

    def refuse(self, name: str, *usual: Any) -> None:
        found = self.config.get(name)
        if found is not None and found not in usual:
            raise ValueError(f"timm's {name} = {found!r} has no equal here: leave it at {usual[-1]!r}")

    def whole(self, name: str, default: int) -> int:
        found = self(name, default)
        if int(found) != found:
            raise ValueError(f"timm's {name}: expected an integer, found {found!r}")
        return int(found)

    def size(self) -> int:
        """The last number of input_size [3,H,W], or img_size."""
        given = self("input_size", self("img_size", 224))
        if isinstance(given, (list, tuple)) and len(given) == 3 and given[0] != 3:
            raise ValueError(f"timm's input_size = {given}: the recipe is of 3 channels; give channels to imagenet_train")
        sides = [given, given] if isinstance(given, (int, float)) else list(given)[-2:]
        if len(set(sides)) != 1:
            raise ValueError(f"timm's img_size and input_size: expected a square, found {given}")
        return int(sides[0])

    def numbers(self) -> tuple[Sequence[float], Sequence[float]]:
        """Of each channel; timm takes one for all."""
        return self.channels("mean", IMAGENET_MEAN), self.channels("std", IMAGENET_STD)

    def channels(self, name: str, default: Sequence[float]) -> list[float]:
        found = list(self(name, default))
        if len(found) not in (1, 3):
            raise ValueError(f"timm's {name}: expected a number for each of 3 channels, or one for all, found {found}")
        return found * (3 // len(found))
