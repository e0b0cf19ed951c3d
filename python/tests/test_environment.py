"""docs/environment.md names every variable that the library reads, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAME = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|OMPI_MCA_\w+|RANK|HOME|NETRC"
# Texts in capitals that are no variables: names of files' formats, of Python's constants, and the beginning of others.
OTHERS = {
    "AWS_CONTAINER", "BIT_PACKED", "BYTE_ARRAY", "BYTE_STREAM_SPLIT", "DATA_PAGE", "DATA_PAGE_V2", "DELTA_BINARY_PACKED",
    "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "DICTIONARY_PAGE", "FIXED_LEN_BYTE_ARRAY", "IMAGENET_MEAN", "IMAGENET_STD",
    "INDEX_PAGE", "LZ4_RAW", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "TOKENIZERS_PARALLELISM",
}  # fmt: skip


def test_the_page_has_what_the_library_reads():
    read: set[str] = set()
    for folder in ("src", "pipelines", "python/src", "python/penstock"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".hpp", ".py"):
                read |= set(re.findall(rf'"({NAME})"', path.read_text()))
    named = set(re.findall(rf"`({NAME})`", (ROOT / "docs" / "environment.md").read_text()))
    assert OTHERS <= read
    assert read - OTHERS == named
