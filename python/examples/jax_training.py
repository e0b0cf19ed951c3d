"""Training with JAX: batches sharded over the local devices, data parallel by jit alone.

    python jax_training.py
    XLA_FLAGS=--xla_force_host_platform_device_count=4 python jax_training.py
"""

import argparse

import jax
import jax.numpy as jnp

import penstock as ps
import penstock.jax

SIDE = 32
CLASSES = 4


def loss_of(weights, images, labels):
    x = images.astype(jnp.float32).reshape(images.shape[0], -1) / 255 - 0.5
    return -jnp.take_along_axis(jax.nn.log_softmax(x @ weights), labels[:, None], 1).mean()


@jax.jit
def update(weights, images, labels):
    loss, gradient = jax.value_and_grad(loss_of)(weights, images, labels)
    return weights - 0.01 * gradient, loss


def main() -> float:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--synthetic", type=int, default=400)
    parser.add_argument("--cache")
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()

    decode = ps.decode_image(crop=ps.random_resized_crop(SIDE, scale=(0.5, 1)), flip=0.5)
    dataset = ps.synthetic_images(options.synthetic, classes=CLASSES, cache=options.cache)
    # A sharded array needs equal parts: drop the short last batch, or pad it.
    plan = dataset.seed(7).shuffle().map(decode).batch(32, remainder="drop")
    loader = penstock.jax.DataLoader(plan)
    weights = jnp.zeros((SIDE * SIDE * 3, CLASSES))
    mean = float("nan")
    for epoch in range(options.epochs):
        losses = []
        for batch in loader:
            weights, loss = update(weights, batch["image"], batch["label"].astype(jnp.int32))
            losses.append(loss)
        mean = float(jnp.stack(losses).mean())
        print(f"epoch {epoch}: loss {mean:.3f} on {len(jax.local_devices())} device(s)")
    return mean


if __name__ == "__main__":
    main()
