"""A contact sheet of a batch: show(), and python -m penstock look. What needs numpy is in _sheet.py."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import penstock
from penstock._errors import Error
from penstock._output import output_file
from penstock._penstock import Dataset, DeviceBatch, Step

if TYPE_CHECKING:
    from penstock._sheet import Sheet


class ContactSheet:
    """The images of a batch, with what belongs to them: what show() returns. Notebooks show it as it is.

    It has a copy of what it shows, and does not hold the batch's slot.
    """

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet

    @property
    def html(self) -> str:
        """One page, with all images in it."""
        from penstock import _sheet

        return _sheet.page_html([self._sheet])

    def _repr_html_(self) -> str:
        from penstock import _sheet

        return _sheet.sheet_html(self._sheet)

    def __repr__(self) -> str:
        return f"<penstock.ContactSheet of {self._sheet.title}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file that ends in .html, or to one that ends in .png the images in a grid, with boxes, keypoints and
        masks, and without the texts.

        Errors  ValueError  another ending; OSError  the file cannot be written
        """
        from penstock import _sheet

        ending = _ending_of(path)
        made = self.html.encode() if ending == ".html" else _sheet.sheet_png(self._sheet)
        with output_file(path) as out:
            out.write(made)


def _ending_of(path: str | os.PathLike[str]) -> str:
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in (".html", ".png"):
        raise ValueError(f"a contact sheet is saved as .html or .png, found '{os.fspath(path)}'")
    return ending


def show(
    step: Step | DeviceBatch,
    *,
    most: int = 64,
    columns: int = 8,
    boxes: str | None = None,
    corners: str | None = None,
    keypoints: str | None = None,
    masks: str | None = None,
    labels: str | None = None,
    class_names: Sequence[str] | None = None,
) -> ContactSheet:
    """A contact sheet of a batch: every field of images, [B,H,W,C] or [B,C,H,W] with 1 or 3 channels, also with views [B,V,...], of u8,
    of u16 divided by 257, or of floats, each image of which is stretched from its smallest to its largest value. Below each image
    stand the sample's number, its label, and the name of its record; rows that are masked or padding are marked.

    Boxes, turned boxes, keypoints and masks are drawn on the field "image", or on the first field of single images. They are fields' names:

    `most`         rows that are shown, the first ones
    `columns`      images in a line
    `boxes`        floats [B,n,4], left, top, right and bottom in pixels; those without area are not drawn. By default "boxes"
    `corners`      floats [B,n,4,2], x and y of the corners of boxes that are turned, which are drawn in place of the boxes. By default
                   "corners"
    `keypoints`    floats [B,n,k,3], x, y and visibility, of which 0 is not drawn. By default "keypoints"
    `masks`        integers [B,H,W] of the image's size, of which 255 and negative ones are transparent, or u8 or bool [B,n,H,W], one for
                   each box. By default "mask" or "masks"
    `labels`       integers [B], or [B,n], one for each box. By default "label" and "labels"
    `class_names`  of the labels, such as plan.class_names; without them labels are numbers

    Errors  ValueError  there is no field of images, a field that was named is absent or has another type or shape, or the step
            has parts for several devices; Error  the batch is on a GPU, and there is no torch that copies it
    """
    from penstock import _sheet

    given = {"boxes": boxes, "corners": corners, "keypoints": keypoints, "masks": masks, "labels": labels}
    return ContactSheet(_sheet.read_sheet(step, most, columns, given, class_names))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, found '{text}'")
    return int(text)


def _output(text: str) -> str:
    try:
        _ending_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m penstock look",
        description="A contact sheet of the first batches of a plan, or of images of a folder: what would a training loop get?",
    )
    parser.add_argument("plan", nargs="?", metavar="PLAN.json", help="a plan that Dataset.save or to_json wrote")
    parser.add_argument("--folder", metavar="DIR", help="images of this folder, shuffled, in place of a plan")
    parser.add_argument("--crop", type=_count, metavar="N", help="with --folder: the side of the center crop, in pixels; by default 224")
    parser.add_argument("--output", type=_output, default="look.html", metavar="FILE", help=".html, or .png without texts")
    parser.add_argument("--steps", type=_count, default=1, metavar="N", help="batches that are shown; by default 1")
    parser.add_argument("--most", type=_count, default=64, metavar="N", help="rows of each batch that are shown; by default 64")
    parser.add_argument("--allow-pickle", action="store_true", help="also plans with Python functions, which run what the file says")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Exit status: 0; 1 for bad data or a bad file, whose message names it; 2 for wrong flags; 130 when interrupted."""
    parser = _parser()
    try:
        options = parser.parse_args(list(arguments))
        if (options.plan is None) == (options.folder is None):
            parser.error("give either PLAN.json or --folder DIR")
        if options.crop is not None and options.folder is None:
            parser.error("--crop is for --folder; a plan has its own")
        if options.steps > 1 and _ending_of(options.output) == ".png":
            parser.error("a .png shows one step: give --output an .html file")
    except SystemExit as ended:
        return int(ended.code or 0)
    try:
        _write(_plan_of(options), options)
    except (Error, ValueError, ImportError, OSError) as error:
        print(f"penstock look: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\npenstock look: stopped", file=sys.stderr)
        return 130
    print(options.output)
    return 0


def _plan_of(options: argparse.Namespace) -> Dataset:
    if options.folder is not None:
        side = options.crop or 224
        crop = penstock.center_crop(side, resize=round(side * 256 / 224))
        return penstock.images(options.folder).seed(0).shuffle().map(penstock.decode_image(crop=crop)).batch(options.most)
    plan = Dataset.load(options.plan, devices="host", allow_pickle=options.allow_pickle)
    return plan if plan.batch_size else plan.batch(options.most)


def _write(plan: Dataset, options: argparse.Namespace) -> None:
    with plan.loader() as loader:
        sheets = [show(step, most=options.most, class_names=plan.class_names) for step in itertools.islice(loader, options.steps)]
    if not sheets:
        raise Error(f"{options.plan or options.folder}: it has no batch")
    if len(sheets) == 1:
        sheets[0].save(options.output)
        return
    from penstock import _sheet

    with output_file(options.output) as out:
        out.write(_sheet.page_html([sheet._sheet for sheet in sheets]).encode())
