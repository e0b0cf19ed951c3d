"""Makes the images beside this file, and expected.txt: of each its size and the CRC-32 of its RGB pixels as Pillow has them, upright,
or how far a lossy image may be from picture.png on average.

    python -m venv VENV && VENV/bin/pip install pillow pillow-heif pillow-jxl-plugin
    VENV/bin/python tests/transform/formats/make.py

Made with Pillow 13.0, pillow-heif 1.8, pillow-jxl-plugin 1.3 and the program cjxl of libjxl 0.7."""
import io
import pathlib
import struct
import subprocess
import tempfile
import zlib

import pillow_heif
import pillow_jxl  # noqa: F401  registers itself
from PIL import Image, ImageOps

pillow_heif.register_heif_opener()
FOLDER = pathlib.Path(__file__).parent
WIDTH, HEIGHT = 37, 22
EXPECTED = []


def make_picture():
    picture = Image.new("RGB", (WIDTH, HEIGHT))
    picture.putdata([(x * 6, y * 11, (x * 5 + y * 7) % 256 if x < 20 else 90) for y in range(HEIGHT) for x in range(WIDTH)])
    return picture


PICTURE = make_picture()
ALPHA = Image.new("L", (WIDTH, HEIGHT))
ALPHA.putdata([(x * 13 + y * 3) % 256 for y in range(HEIGHT) for x in range(WIDTH)])
RGBA = PICTURE.copy()
RGBA.putalpha(ALPHA)
PALETTE = PICTURE.quantize(200)


def add(name, content, tolerance=None):
    """Writes a file, and what is expected of it: Pillow's pixels, or those of the picture within a tolerance."""
    (FOLDER / name).write_bytes(content)
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("RGB")
    what = f"{zlib.crc32(image.tobytes()):08x}" if tolerance is None else f"near {tolerance}"
    EXPECTED.append(f"{name} {image.width} {image.height} {what}")


def out_of(image, kind, **options):
    out = io.BytesIO()
    image.save(out, format=kind, **options)
    return out.getvalue()


def save(name, image, tolerance=None, **options):
    out = io.BytesIO()
    image.save(out, **options)
    add(name, out.getvalue(), tolerance)


# ---- BMP: Pillow writes few kinds of it ----


def bmp(bits, pixels, compression=0, masks=b"", palette=b"", header=40, height=HEIGHT, core=False):
    if core:
        dib = struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, bits)
    else:
        dib = struct.pack("<IiiHHIIiiII", header, WIDTH, height, 1, bits, compression, len(pixels), 0, 0, len(palette) // 4, 0)
        dib += masks.ljust(header - 40, b"\0") if header > 40 else masks
    offset = 14 + len(dib) + len(palette)
    return b"BM" + struct.pack("<IHHI", offset + len(pixels), 0, 0, offset) + dib + palette + pixels


def rows(pack, top_down=False):
    order = range(HEIGHT) if top_down else reversed(range(HEIGHT))
    out = b""
    for y in order:
        row = b"".join(pack(*PICTURE.getpixel((x, y)), ALPHA.getpixel((x, y))) for x in range(WIDTH))
        out += row.ljust(-(-len(row) // 4) * 4, b"\0")
    return out


def runs(levels, four_bits):
    """All that a compressed bitmap may have: runs, pixels one by one, a jump, and ends of rows."""
    out = b""
    for k, y in enumerate(reversed(range(HEIGHT))):
        row = [levels(x, y) for x in range(WIDTH)]
        if k == 3:
            out += bytes([0, 2, 5, 1])  # five pixels and a row are left out
            continue
        if k == 4:
            row = row[5:]
        while row:
            same = 1
            while same < min(len(row), 255) and row[same] == row[0]:
                same += 1
            if same > 2 or len(row) < 4:
                out += bytes([same, row[0] * 17 if four_bits else row[0]])
                row = row[same:]
            else:
                count = min(len(row), 7)
                if four_bits:
                    nibbles = row[:count] + [0] * (count % 2)
                    packed = bytes(nibbles[i] * 16 + nibbles[i + 1] for i in range(0, len(nibbles), 2))
                else:
                    packed = bytes(row[:count])
                out += bytes([0, count]) + packed.ljust(-(-len(packed) // 2) * 2, b"\0")
                row = row[count:]
        out += b"\0\0"
    return out + b"\0\1"


def make_bmps():
    save("rgb.bmp", PICTURE, format="BMP")
    hotspot = bytearray(out_of(PICTURE, "BMP"))
    hotspot[6:10] = struct.pack("<HH", 12, 3)
    add("hotspot.bmp", bytes(hotspot))
    save("grey.bmp", PICTURE.convert("L"), format="BMP")
    save("bits1.bmp", PICTURE.convert("1"), format="BMP")
    save("palette.bmp", PALETTE, format="BMP")
    grey = bytes(v for k in range(16) for v in (k * 17, k * 3, 255 - k * 9, 0))
    four = lambda x, y: (x // 5 + y) % 16  # noqa: E731
    packed = b""
    for y in reversed(range(HEIGHT)):
        row = [four(x, y) for x in range(WIDTH)] + [0]
        packed += bytes(row[i] * 16 + row[i + 1] for i in range(0, WIDTH + 1, 2)).ljust(20, b"\0")
    add("bits4.bmp", bmp(4, packed, palette=grey))
    add("rle4.bmp", bmp(4, runs(four, True), 2, palette=grey))
    full = bytes(v for k in range(256) for v in (k, 255 - k, k // 2, 0))
    add("rle8.bmp", bmp(8, runs(lambda x, y: (x // 4) * 20 + y, False), 1, palette=full))
    add("bgrx.bmp", bmp(32, rows(lambda r, g, b, a: bytes([b, g, r, a]))))
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    add("bgra.bmp", bmp(32, rows(lambda r, g, b, a: bytes([b, g, r, a])), 3, masks, header=108))
    masks = struct.pack("<IIII", 0xFF, 0xFF00, 0xFF0000, 0xFF000000)
    add("rgba_version5.bmp", bmp(32, rows(lambda r, g, b, a: bytes([r, g, b, a])), 3, masks, header=124))
    add("rgb555.bmp", bmp(16, rows(lambda r, g, b, a: struct.pack("<H", r >> 3 << 10 | g >> 3 << 5 | b >> 3))))
    masks = struct.pack("<III", 0xF800, 0x7E0, 0x1F)
    add("rgb565.bmp", bmp(16, rows(lambda r, g, b, a: struct.pack("<H", r >> 3 << 11 | g >> 2 << 5 | b >> 3)), 3, masks))
    bgr = lambda r, g, b, a: bytes([b, g, r])  # noqa: E731
    add("os2.bmp", bmp(24, rows(bgr), core=True))
    add("top_down.bmp", bmp(24, rows(bgr, True), height=-HEIGHT))


# ---- GIF ----


def make_gifs():
    save("plain.gif", PALETTE, format="GIF", interlace=0)
    save("interlaced.gif", PALETTE, format="GIF", interlace=1)
    save("transparent.gif", PALETTE, format="GIF", transparency=7)
    other = ImageOps.mirror(PICTURE).quantize(64)
    save("animated.gif", PALETTE, format="GIF", save_all=True, append_images=[other], duration=50, loop=0)
    # A screen that is larger than the frame, and a frame that reaches beyond the screen.
    for name, options, screen in (("small_frame.gif", {}, (50, 40)), ("small_frame_transparent.gif", {"transparency": 3}, (50, 40)),
                                  ("large_frame.gif", {}, (20, 10))):
        out = io.BytesIO()
        PALETTE.save(out, format="GIF", **options)
        content = bytearray(out.getvalue())
        content[6:10] = struct.pack("<HH", *screen)
        if screen[0] > WIDTH:  # its place: behind the comma that begins it
            at = content.index(b"\x2c\0\0\0\0" + struct.pack("<HH", WIDTH, HEIGHT))
            content[at + 1:at + 5] = struct.pack("<HH", 9, 13)
        add(name, bytes(content))


# ---- TIFF ----


def make_tiffs():
    save("rgb.tif", PICTURE, format="TIFF")
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits"):
        save(f"{compression.removeprefix('tiff_')}.tif", PICTURE, format="TIFF", compression=compression)
    save("group4.tif", PICTURE.convert("1"), format="TIFF", compression="group4")
    save("grey.tif", PICTURE.convert("L"), format="TIFF")
    save("palette.tif", PALETTE, format="TIFF")
    save("rgba.tif", RGBA, format="TIFF")
    premultiplied = bytearray(out_of(RGBA, "TIFF"))
    at = premultiplied.index(struct.pack("<HHI", 338, 3, 1))  # ExtraSamples: 2 is unassociated alpha, 1 associated
    premultiplied[at + 8] = 1
    add("premultiplied.tif", bytes(premultiplied))
    unknown = bytearray(out_of(RGBA, "TIFF"))
    unknown[at + 8] = 0  # a fourth sample of no stated kind
    add("unknown_sample.tif", bytes(unknown))
    save("jpeg.tif", PICTURE, 6, format="TIFF", compression="jpeg", quality=90)
    save("bigtiff.tif", PICTURE, format="TIFF", big_tiff=True)
    save("pages.tif", PICTURE, format="TIFF", save_all=True, append_images=[ImageOps.mirror(PICTURE)])
    for orientation in (3, 6):
        save(f"orientation{orientation}.tif", PICTURE, format="TIFF", tiffinfo={274: orientation})


# ---- the others ----


def table_profile():
    """An ICC profile of sRGB's primaries whose curve is a table, so that it is no colour space that JPEG XL has a name for."""
    curve = b"curv" + bytes(4) + struct.pack(">I", 64) + struct.pack(">64H", *(round(65535 * (k / 63) ** 2.3) for k in range(64)))
    xyz = lambda x, y, z: b"XYZ " + bytes(4) + struct.pack(">3i", *(round(v * 65536) for v in (x, y, z)))  # noqa: E731
    text = b"desc" + bytes(4) + struct.pack(">I", 6) + b"table\0" + bytes(4 + 4 + 2 + 1 + 67)
    tags = {
        b"desc": text, b"cprt": b"text" + bytes(4) + b"none\0", b"wtpt": xyz(0.9642, 1, 0.8249),
        b"rXYZ": xyz(0.43607, 0.22249, 0.01392), b"gXYZ": xyz(0.38515, 0.71687, 0.09708), b"bXYZ": xyz(0.14307, 0.06061, 0.7141),
        b"rTRC": curve, b"gTRC": curve, b"bTRC": curve,
    }
    at, table, data = 132 + 12 * len(tags), b"", b""
    for name, content in tags.items():
        content += bytes(-len(content) % 4)
        table += name + struct.pack(">II", at + len(data), len(content))
        data += content
    size = at + len(data)
    head = struct.pack(">I4sI4s4s4s", size, bytes(4), 0x02400000, b"mntr", b"RGB ", b"XYZ ") + struct.pack(">6H", 2026, 1, 1, 0, 0, 0)
    head += b"acsp" + bytes(28) + struct.pack(">3i", 63190, 65536, 54061)
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + data


def size_last(content):
    """The AVIF with its first property, the size, behind all others: some writers do that, against the standard."""
    content = bytearray(content)
    at = content.index(b"ipma") + 4 + 8 + 2
    count = content[at]
    content[at + 1:at + 1 + count] = content[at + 2:at + 1 + count] + content[at + 1:at + 2]
    return bytes(content)


def cropped(content, left, top, width, height):
    """The AVIF with a clean aperture, before its other properties."""
    content = bytearray(content)
    clap = struct.pack(">I4s4I", 40, b"clap", width, 1, height, 1)
    clap += struct.pack(">iIiI", 2 * left + width - WIDTH, 2, 2 * top + height - HEIGHT, 2)
    table = content.index(b"ipco") - 4
    (table_size,) = struct.unpack_from(">I", content, table)
    at, number = table + 8, 1
    while at < table + table_size:
        at, number = at + struct.unpack_from(">I", content, at)[0], number + 1
    for name, more in ((b"ipco", 40), (b"ipma", 1), (b"iprp", 41), (b"meta", 41)):
        box = content.index(name) - 4
        struct.pack_into(">I", content, box, struct.unpack_from(">I", content, box)[0] + more)
    extent = content.index(b"iloc") + 4 + 4 + 2 + 2 + 6
    struct.pack_into(">I", content, extent, struct.unpack_from(">I", content, extent)[0] + 41)
    count = content.index(b"ipma") + 4 + 8 + 2
    content[count] += 1
    content[count + 1:count + 1] = bytes([0x80 | number])
    content[table + table_size:table + table_size] = clap
    return bytes(content)


def grid(content):
    """The AVIF as the only tile of a grid."""

    def box(name, body):
        return struct.pack(">I4s", 8 + len(body), name) + body

    def taken(name):
        at = content.index(name) - 4
        return content[at:at + struct.unpack_from(">I", content, at)[0]]

    pixels = taken(b"mdat")[8:]
    infos = b"".join(box(b"infe", bytes([2, 0, 0, hidden]) + struct.pack(">HH4sx", item, 0, kind))
                     for item, kind, hidden in ((1, b"av01", 1), (2, b"grid", 0)))
    of_grid = bytes([0, 0, 0, 0]) + struct.pack(">HH", WIDTH, HEIGHT)  # a row, a column, and the size
    associations = struct.pack(">II", 0, 2) + b"\0\1\4\1\2\x83\4" + b"\0\2\2\1\2"

    def meta(offset):
        places = bytes([1, 0, 0, 0, 0x44, 0]) + struct.pack(">H", 2)
        for item, method, at, size in ((1, 0, offset, len(pixels)), (2, 1, 0, len(of_grid))):
            places += struct.pack(">HHHHII", item, method, 0, 1, at, size)
        return box(b"meta", bytes(4) + taken(b"hdlr") + box(b"pitm", struct.pack(">IH", 0, 2)) + box(b"iloc", places)
                   + box(b"iinf", struct.pack(">IH", 0, 2) + infos)
                   + box(b"iref", bytes(4) + box(b"dimg", struct.pack(">HHH", 2, 1, 1)))
                   + box(b"iprp", taken(b"ipco") + box(b"ipma", associations)) + box(b"idat", of_grid))

    begin = taken(b"ftyp")
    return begin + meta(len(begin) + len(meta(0)) + 8) + box(b"mdat", pixels)


def make_grid():
    (FOLDER / "grid.avif").write_bytes(grid((FOLDER / "avif.avif").read_bytes()))
    EXPECTED.append(f"grid.avif {WIDTH} {HEIGHT} near 6")


def make_early_turns():
    content = size_last((FOLDER / "turned.avif").read_bytes())
    (FOLDER / "turned_early.avif").write_bytes(content)
    EXPECTED.append(f"turned_early.avif {WIDTH} {HEIGHT} near 6")
    PICTURE.crop((5, 4, 25, 15)).save(FOLDER / "cropped.png")  # Pillow does not crop it
    (FOLDER / "cropped_early.avif").write_bytes(cropped((FOLDER / "avif.avif").read_bytes(), 5, 4, 20, 11))
    EXPECTED.append("cropped_early.avif 20 11 near 6 cropped.png")


def make_others():
    exif = Image.Exif()
    exif[274] = 6
    save("orientation.png", PICTURE, format="PNG", exif=exif)
    wide = Image.frombytes("I;16", (WIDTH, HEIGHT), b"".join(struct.pack("<H", k * 79) for k in range(WIDTH * HEIGHT)))
    wide.save(FOLDER / "wide_orientation.png", exif=exif)
    save("orientation.webp", PICTURE, format="WEBP", lossless=True, exif=exif)
    save("animated.webp", PICTURE, format="WEBP", lossless=True, save_all=True, append_images=[ImageOps.mirror(PICTURE)],
         duration=40)
    save("heic.heic", PICTURE, 6, format="HEIF", quality=90)
    save("lossless.heic", PICTURE, 3, format="HEIF", quality=-1, chroma=444)
    save("avif.avif", PICTURE, 6, format="AVIF", quality=90)
    (FOLDER / "grey.avif").write_bytes(out_of(PICTURE.convert("L"), "AVIF", quality=95, range="limited"))
    EXPECTED.append(f"grey.avif {WIDTH} {HEIGHT} near 2 grey.bmp")
    save("alpha.avif", RGBA, 6, format="AVIF", quality=90)
    save("turned.avif", PICTURE.transpose(Image.Transpose.ROTATE_90), 6, format="AVIF", quality=90, exif=exif)
    make_early_turns()
    make_grid()
    save("lossless.jxl", PICTURE, format="JXL", lossless=True)
    save("lossless_alpha.jxl", RGBA, format="JXL", lossless=True)
    with tempfile.TemporaryDirectory() as folder:  # Pillow's plugin writes no profile
        PICTURE.save(f"{folder}/a.png", icc_profile=table_profile())
        subprocess.run(["cjxl", "--quiet", "-d", "1", f"{folder}/a.png", f"{folder}/a.jxl"], check=True)
        (FOLDER / "profile.jxl").write_bytes(pathlib.Path(f"{folder}/a.jxl").read_bytes())
    EXPECTED.append(f"profile.jxl {WIDTH} {HEIGHT} near 6")
    save("lossy.jxl", PICTURE, 6, format="JXL", quality=90)


if __name__ == "__main__":
    PICTURE.save(FOLDER / "picture.png")
    make_bmps()
    make_gifs()
    make_tiffs()
    make_others()
    (FOLDER / "expected.txt").write_text("\n".join(EXPECTED) + "\n")
