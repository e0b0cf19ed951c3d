"""Training with PyTorch: what changes when penstock takes the place of DataLoader(ImageFolder(...)).

    python torch_training.py                    # generated photographs
    python torch_training.py --data photos
    torchrun --nproc-per-node 2 torch_training.py --seed 7
"""

import argparse

import torch
from torch import nn

import penstock as ps
import penstock.torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--synthetic", type=int, default=400)
    parser.add_argument("--cache")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--crop", type=int, default=64)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--checkpoint", help="save here after each epoch, and resume from it")
    options = parser.parse_args()

    # was: dataset = ImageFolder(data, transform=Compose([RandomResizedCrop(64), RandomHorizontalFlip(),
    #                                                     PILToTensor()]))
    dataset = ps.image_folder(options.data) if options.data else ps.synthetic_images(
        options.synthetic, cache=options.cache)  # fmt: skip
    decode = ps.decode_image(crop=ps.random_resized_crop(options.crop), flip=0.5)
    # was: sampler = DistributedSampler(dataset)
    #      loader = DataLoader(dataset, batch_size=batch // world, sampler=sampler, num_workers=8,
    #                          pin_memory=True, drop_last=True, persistent_workers=True)
    plan = dataset.seed(options.seed).shuffle().map(decode).batch(options.batch, remainder="drop")
    loader = penstock.torch.DataLoader(plan)

    device = penstock.torch.current_device().replace("host:0", "cpu")
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    first = 0
    if options.checkpoint:
        try:
            saved = torch.load(options.checkpoint)
        except FileNotFoundError:
            pass
        else:
            model.load_state_dict(saved["model"])
            loader.load_state_dict(saved["loader"])
            first = saved["epoch"]

    for epoch in range(first, options.epochs):
        # was: sampler.set_epoch(epoch)
        total, steps = 0.0, 0
        for batch in loader:
            # was: images, labels = images.to(device, non_blocking=True), labels.to(device, ...)
            images = batch["image"].permute(0, 3, 1, 2).float() / 255 - 0.5  # u8 [N,H,W,C]
            loss = nn.functional.cross_entropy(model(images), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        print(f"epoch {epoch}: loss {total / max(steps, 1):.3f} over {steps} of {len(loader)} steps")
        if options.checkpoint:
            torch.save(
                {"model": model.state_dict(), "loader": loader.state_dict(), "epoch": epoch + 1}, options.checkpoint
            )
    print(f"waited for the data {100 * loader.stats().stall_fraction:.0f}% of the time")


if __name__ == "__main__":
    main()
