"""Operations on the pixels of images, for augment_image():

    import penstock as ps
    from penstock import augment as pa

    train = (ps.image_folder("train").shuffle()
             .map(ps.decode_image(crop=ps.random_resized_crop(224)))
             .map(ps.augment_image([pa.flip(), pa.rand_augment()]))
             .batch(256))

What an operation draws depends on the seed, the epoch, the sample and the operation's place in the plan alone.
"""

from penstock._penstock import (
    Augmentation,
    affine,
    aug_mix,
    auto_augment,
    autocontrast,
    brightness,
    color_jitter,
    contrast,
    equalize,
    flip,
    gaussian_blur,
    grayscale,
    hsv_jitter,
    hue,
    invert,
    perspective,
    posterize,
    rand_augment,
    random_apply,
    random_choice,
    rotate,
    saturation,
    sharpness,
    shear,
    solarize,
    three_augment,
    timm_rand_augment,
    translate,
    trivial_augment_wide,
    vertical_flip,
)

__all__ = [
    "Augmentation",
    "brightness",
    "contrast",
    "saturation",
    "hue",
    "color_jitter",
    "hsv_jitter",
    "grayscale",
    "solarize",
    "posterize",
    "equalize",
    "autocontrast",
    "invert",
    "sharpness",
    "gaussian_blur",
    "flip",
    "vertical_flip",
    "rotate",
    "shear",
    "translate",
    "affine",
    "perspective",
    "random_apply",
    "random_choice",
    "trivial_augment_wide",
    "rand_augment",
    "auto_augment",
    "aug_mix",
    "timm_rand_augment",
    "three_augment",
]
