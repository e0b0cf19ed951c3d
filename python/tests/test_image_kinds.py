"""Images of kinds other than JPEG: Pillow writes them here, and what comes out is what Pillow reads."""

from __future__ import annotations

import io
import json
import random
import warnings

import numpy as np
import pytest

import penstock as ps

Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")


def picture(mode: str, seed: int, size: tuple[int, int] = (45, 31)) -> Image.Image:
    """Patches of few colours, so that runs and palettes are used."""
    chance = random.Random(seed)
    colors = [tuple(chance.randrange(256) for _ in range(4)) for _ in range(12)]
    image = Image.new("RGBA", size)
    for _ in range(40):
        box = (chance.randrange(size[0]), chance.randrange(size[1]))
        image.paste(chance.choice(colors), (*box, box[0] + chance.randrange(1, 20), box[1] + chance.randrange(1, 20)))
    return image.quantize(16) if mode == "P" else image.convert("RGB").convert(mode) if mode != "RGBA" else image


def encoded(image: Image.Image, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def decoded(content: bytes, **options: object) -> np.ndarray:
    data = ps.Dataset([{"image": content}])
    height, width = ps.image_sizes(data, exif=options.get("exif", True))[0]
    plan = data.map(ps.decode_image(crop=ps.resize_to((int(height), int(width))), **options)).batch(1)
    (step,) = plan.loader(threads=1)
    return step["image"].numpy()[0].copy()


def pillows(content: bytes) -> np.ndarray:
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("RGB"))


KINDS = [
    ("BMP", mode, {}) for mode in ("1", "L", "P", "RGB")
] + [
    ("GIF", "P", {"interlace": interlace}) for interlace in (0, 1)
] + [
    ("TIFF", mode, {"compression": compression})
    for mode in ("1", "L", "P", "RGB", "RGBA", "CMYK")
    for compression in (None, "packbits", "tiff_lzw", "tiff_adobe_deflate")
] + [
    ("WEBP", "RGB", {"lossless": True, "save_all": True}),
    ("PNG", "RGB", {}),
]
LIBRARY = {"GIF": "giflib", "TIFF": "libtiff"}


@pytest.mark.parametrize(("kind", "mode", "options"), KINDS, ids=lambda value: str(value).replace(" ", ""))
def test_pixels_are_pillows(kind: str, mode: str, options: dict[str, object]) -> None:
    if kind in LIBRARY and LIBRARY[kind] not in ps.image_libraries():
        pytest.skip(f"built without {LIBRARY[kind]}")
    for seed in range(6):
        image = picture(mode, seed, (random.Random(seed).randrange(1, 70), random.Random(-seed).randrange(1, 50)))
        more = dict(options)
        if more.get("save_all"):
            more["append_images"] = [ImageOps.invert(image)]
        content = encoded(image, format=kind, **more)
        np.testing.assert_array_equal(decoded(content), pillows(content))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_exif_orientation_turns_them(kind: str, orientation: int) -> None:
    if kind in LIBRARY and LIBRARY[kind] not in ps.image_libraries():
        pytest.skip(f"built without {LIBRARY[kind]}")
    image = picture("RGB", 3)
    if kind == "TIFF":
        content = encoded(image, format=kind, tiffinfo={274: orientation})
    else:
        exif = Image.Exif()
        exif[274] = orientation
        content = encoded(image, format=kind, exif=exif, **({"lossless": True} if kind == "WEBP" else {}))
    np.testing.assert_array_equal(decoded(content), pillows(content))
    np.testing.assert_array_equal(decoded(content, exif=False), np.asarray(image))


def test_a_state_of_other_libraries_is_warned_of() -> None:
    data = ps.Dataset([{"image": encoded(picture("RGB", 1), format="PNG")}] * 4)
    plan = data.map(ps.decode_image(crop=ps.resize_to(8))).batch(1)
    loader = plan.loader()
    state = loader.state_dict()
    assert {library["name"]: library["version"] for library in state.get("image_libraries", [])} == ps.image_libraries()
    if not ps.image_libraries():
        pytest.skip("built without optional libraries")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader.load_state_dict(state)
    changed = json.dumps(state).replace(state["image_libraries"][0]["version"], "0.0.1", 1)
    with pytest.raises(ps.Error, match="checksum"):
        loader.load_state_dict(changed)


def test_what_is_not_decoded_is_named() -> None:
    with pytest.raises(ps.Error, match="not an image that can be decoded: found a Photoshop image"):
        ps.image_sizes(ps.Dataset([{"image": b"8BPS" + bytes(60)}]))


def test_a_palette_that_the_offset_of_a_bmp_leaves_out() -> None:
    image = Image.effect_noise((40, 30), 60).convert("P", palette=Image.Palette.ADAPTIVE, colors=200)
    good = encoded(image, format="BMP")
    content = good[:10] + (54).to_bytes(4, "little") + good[14:]
    assert (pillows(content) == pillows(good)).all()
    assert (decoded(content) == pillows(good)).all()


def test_integers_with_a_sign_are_no_levels() -> None:
    content = encoded(Image.new("L", (4, 3), 200), format="TIFF", tiffinfo={339: 2})
    with pytest.raises(ps.Error, match="a TIFF of signed integers|built without libtiff"):
        decoded(content)


def test_grey_images_of_two_extents_need_a_third() -> None:
    items = [{"image": Image.new("L", (28, 28), k), "label": k} for k in range(4)]
    with pytest.raises(ValueError, match=r"a grey image has the shape \[\?,\?,1\]; in Python fields="):
        ps.Dataset(items).map(ps.crop_image(crop=ps.resize_to(28)))
    fields = {"image": ("u8", (None, None, 1)), "label": ("i64", ())}
    (step,) = ps.Dataset(items, fields=fields).map(ps.crop_image(crop=ps.resize_to((28, 28)))).batch(4).loader()
    assert (step["image"].numpy() == np.arange(4)[:, None, None, None]).all()
