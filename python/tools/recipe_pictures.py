"""Makes docs/pictures/recipes.jpg: twelve images, and what each recipe of penstock.recipes makes of them.

Usage: python python/tools/recipe_pictures.py [--images FOLDER] [--output FILE]
       pip install penstock pillow

Without --images they are synthetic.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import penstock as ps
from PIL import Image, ImageDraw

COUNT, SIDE, GAP, MARGIN = 12, 72, 4, 150
OUTPUT = Path(__file__).parents[2] / "docs" / "pictures" / "recipes.jpg"


def levels(pixels: np.ndarray) -> np.ndarray:
    """Of normalised [3,H,W], as [H,W,3] of 0 to 255."""
    mean, std = (np.array(each)[:, None, None] for each in (ps.recipes.IMAGENET_MEAN, ps.recipes.IMAGENET_STD))
    return (np.clip(pixels * std + mean, 0, 1) * 255).round().astype(np.uint8).transpose(1, 2, 0)


def rows(plan: ps.Dataset, fields: list[str]) -> dict[str, list[np.ndarray]]:
    """What is made of samples 0 to 11, by field and view."""
    found: dict[str, list[np.ndarray]] = {}
    step = next(iter(plan.loader()))
    places = {sample.number: row for row, sample in reversed(list(enumerate(step.samples)))}
    for field in fields:
        pixels = np.asarray(step[field])
        views = pixels if pixels.ndim == 5 else pixels[:, None]
        for view in range(min(views.shape[1], 2)):
            name = f"{field}[{view}]" if pixels.ndim == 5 else field
            found[name] = [levels(views[places[number], view]) for number in range(COUNT) if number in places]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, help="a folder of images")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    data = (ps.image_folder(arguments.images, labels=None) if arguments.images else ps.synthetic_images(COUNT)).take(COUNT).seed(7)
    recipe, augment = ps.recipes, ps.augment
    mixing = {"mixup": 0.8, "cutmix": 1.0}
    shown = {
        "imagenet_eval": rows(recipe.imagenet_eval(data, COUNT), ["image"]),
        "imagenet_train": rows(recipe.imagenet_train(data, COUNT), ["image"]),
        "TrivialAugment, erasing,\nmixup, cutmix": rows(
            recipe.imagenet_train(data, COUNT, augment=[augment.trivial_augment_wide()], erase=0.3, **mixing), ["image"]
        ),
        "timm's rand-m9": rows(recipe.imagenet_train(data, COUNT, augment=[augment.timm_rand_augment()]), ["image"]),
        "AugMix": rows(recipe.imagenet_train(data, COUNT, augment=[augment.aug_mix()]), ["image"]),
        "3-Augment": rows(recipe.imagenet_train(data, COUNT, augment=[augment.three_augment()]), ["image"]),
        "simclr": rows(recipe.simclr(data, COUNT), ["image"]),
        "dino": rows(recipe.dino(data, COUNT), ["global_1", "global_2", "local"]),
    }
    lines = [(name, field, images) for name, fields in shown.items() for field, images in fields.items()]
    page = Image.new("RGB", (MARGIN + COUNT * (SIDE + GAP), len(lines) * (SIDE + GAP)), "white")
    draw = ImageDraw.Draw(page)
    for line, (name, field, images) in enumerate(lines):
        top = line * (SIDE + GAP)
        draw.text((4, top + SIDE // 3), name + ("" if field == "image" else f"\n{field}"), fill="black")
        for column, image in enumerate(images):
            page.paste(Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BICUBIC), (MARGIN + column * (SIDE + GAP), top))
    arguments.output.parent.mkdir(exist_ok=True)
    page.save(arguments.output, quality=75)


if __name__ == "__main__":
    main()
