"""What nvcc makes of kernels: registers, stack and spills by ptxas, and what accesses memory where nvdisasm is there.

    device_code_test.py NVCC FOLDER... [CASE]     the folders are where headers are looked for
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NVCC = ""
FOLDERS: list[str] = []


class Code:
    """One file for sm_90: what ptxas says of each kernel, and its instructions."""

    def __init__(self, source: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            cubin = Path(folder) / "kernels.cubin"
            command = [NVCC, "-std=c++20", "-O3", "-arch=sm_90", "-cubin", "-Xptxas", "-v", "-o", str(cubin)]
            command += [f"-I{folder}" for folder in FOLDERS]
            made = subprocess.run([*command, str(ROOT / source)], capture_output=True, text=True)
            if made.returncode != 0:
                raise RuntimeError(made.stdout + made.stderr)
            self.use = self._use(made.stdout + made.stderr)
            self.instructions = self._instructions(cubin)

    @staticmethod
    def _use(text: str) -> dict[str, dict[str, int]]:
        pattern = (
            r"Compiling entry function '(\w+)'.*?(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
            r"(?P<loads>\d+) bytes spill loads.*?Used (?P<registers>\d+) registers"
        )
        return {found[1]: {k: int(v) for k, v in found.groupdict().items()} for found in re.finditer(pattern, text, re.DOTALL)}

    @staticmethod
    def _instructions(cubin: Path) -> dict[str, list[str]] | None:
        nvdisasm = shutil.which("nvdisasm", path=f"{Path(NVCC).parent}{os.pathsep}{os.environ.get('PATH', '')}")
        if nvdisasm is None:
            return None
        text = subprocess.run([nvdisasm, "-c", str(cubin)], capture_output=True, text=True, check=True).stdout
        kernels: dict[str, list[str]] = {}
        for part in re.split(r"^\.text\.", text, flags=re.MULTILINE)[1:]:
            kernels[part[: part.index(":")]] = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9._a-z]+)", part)
        return kernels


class DeviceCode(unittest.TestCase):
    jpeg: Code

    @classmethod
    def setUpClass(cls) -> None:
        cls.jpeg = Code("src/gpu_jpeg/cuda_jpeg.cu")

    def instructions(self, kernel: str) -> list[str]:
        if self.jpeg.instructions is None:
            self.skipTest("no nvdisasm here")
        return next(all for name, all in self.jpeg.instructions.items() if kernel in name)

    def test_jpeg_kernels_fit_in_registers(self) -> None:
        # More registers would leave a multiprocessor fewer threads.
        most = {"make_tables": 32, "read_pieces": 64, "transform_blocks": 80, "make_pixels": 32, "resize_pixels": 48}
        for kernel, registers in most.items():
            with self.subTest(kernel):
                found = [use for name, use in self.jpeg.use.items() if kernel in name]
                self.assertTrue(found)
                for use in found:
                    self.assertEqual((use["stack"], use["stores"], use["loads"]), (0, 0, 0))
                    self.assertLessEqual(use["registers"], registers)

    def test_blocks_are_read_and_written_in_wide_words(self) -> None:
        found = self.instructions("transform_blocks")
        self.assertEqual(sum(name.startswith("LDG.E.128") for name in found), 16)
        self.assertEqual(sum(name.startswith("STG.E.64") for name in found), 8)
        self.assertFalse([name for name in found if re.match(r"STG\.E(\.U8|\.U16)?$|LDG\.E\.U16", name)])

    def test_codes_are_looked_up_in_shared_memory(self) -> None:
        found = self.instructions("read_pieces")
        self.assertEqual(found.count("LDS.U16"), 1)
        self.assertGreater(sum(name.startswith("LDGSTS") for name in found), 0)
        self.assertFalse([name for name in found if re.match(r"LDL|STL|LD\.|ST\.", name)])

    def test_no_thread_waits_for_its_turn_to_add(self) -> None:
        if self.jpeg.instructions is None:
            self.skipTest("no nvdisasm here")
        kernels = Code("src/device/cuda_augmentation.cu").instructions
        self.assertTrue(kernels)
        self.assertFalse([name for all in kernels.values() for name in all if name.startswith("ATOMS.CAS")])


if __name__ == "__main__":
    arguments = sys.argv[1:]
    cases = [argument for argument in arguments if argument.startswith("DeviceCode")]
    NVCC, *FOLDERS = [argument for argument in arguments if argument not in cases]
    unittest.main(argv=[sys.argv[0], "-v", *cases])
