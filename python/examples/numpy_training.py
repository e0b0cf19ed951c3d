"""A training loop in plain numpy: a linear classifier learns the classes of generated photographs.

    python numpy_training.py                    # 600 generated photographs of 4 classes
    python numpy_training.py --data photos      # a folder with a sub-folder for each class
"""

import argparse

import numpy as np

import penstock as ps

SIDE = 16


def batches(dataset: ps.Dataset, train: bool) -> ps.Dataset:
    crop = ps.random_resized_crop(SIDE, scale=(0.5, 1)) if train else ps.center_crop(SIDE, resize=SIDE)
    return dataset.seed(1).shuffle().map(ps.decode_image(crop=crop, flip=0.5 if train else 0)).batch(32)


def features(step: ps.Step) -> np.ndarray:
    # A view of the loader's own memory; the division makes the first copy.
    images = np.asarray(step["image"])
    flat = images.reshape(len(images), -1) / 255.0 - 0.5
    return np.hstack([flat, np.ones((len(images), 1))])


def main() -> float:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--synthetic", type=int, default=600)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--cache")
    options = parser.parse_args()
    if options.data:
        training = validation = ps.image_folder(options.data)
        classes = len(training.class_names)
        if classes == 0:
            parser.error("--data must be a folder with a sub-folder for each class")
    else:
        classes = 4
        made = {"classes": classes, "cache": options.cache}
        training = ps.synthetic_images(options.synthetic, seed=1, **made)
        validation = ps.synthetic_images(options.synthetic // 4, seed=2, **made)

    weights = np.zeros((SIDE * SIDE * 3 + 1, classes))
    loader = batches(training, True).repeat(options.epochs).loader()
    for epoch in loader.epochs():
        loss, samples = 0.0, 0
        for step in epoch:
            x, labels = features(step), np.asarray(step["label"])
            scores = np.exp(x @ weights)
            share = scores / scores.sum(axis=1, keepdims=True)
            loss -= np.log(share[np.arange(len(labels)), labels]).sum()
            samples += len(labels)
            share[np.arange(len(labels)), labels] -= 1
            weights -= 0.05 * x.T @ share / len(labels)
        print(f"epoch {epoch.number}: loss {loss / samples:.3f}")

    right = total = 0
    for step in batches(validation, False).loader():
        right += int(((features(step) @ weights).argmax(axis=1) == np.asarray(step["label"])).sum())
        total += len(step.samples)
    print(f"{right} of {total} right, {100 * right / total:.0f}%; by chance {100 / classes:.0f}%")
    print(f"waited for the data {100 * loader.stats().stall_fraction:.0f}% of the time")
    return right / total


if __name__ == "__main__":
    main()
