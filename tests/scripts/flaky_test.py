"""scripts/flaky in a tree of its own, with real reports of ctest: what gets a second run, what does not, and what is listed.

    flaky_test.py [CASE]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FLAKY = Path(__file__).resolve().parents[2] / "scripts" / "flaky"

# Fails the first time that it runs in a folder, prints `text` then, and passes from then on.
ONCE = """count=0; [ ! -f {file} ] || count=$(cat {file}); echo $((count + 1)) >{file}; [ $count -ge {times} ] || {{ printf '{text}'; exit 1; }}"""


class Tree(unittest.TestCase):
    def setUp(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "scripts").mkdir()
        (self.root / "build/ci").mkdir(parents=True)
        shutil.copy(FLAKY, self.root / "scripts")
        self.script("test", 'ctest --test-dir build/ci --output-junit tests.xml --output-on-failure "$@"')
        self.tests = ""

    def script(self, name: str, text: str) -> None:
        file = self.root / "scripts" / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def add(self, name: str, shell: str) -> None:
        self.tests += f"add_test([=[{name}]=] sh -c [=[{shell}]=])\n"
        (self.root / "build/ci/CTestTestfile.cmake").write_text(self.tests)

    def add_once(self, name: str, text: str = "", times: int = 1) -> None:
        self.add(name, ONCE.format(file=self.root / f"ran-{self.tests.count('add_test')}", text=text, times=times))

    def flaky(self, *arguments: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PENSTOCK_FLAKY": str(self.root / "record")}
        return subprocess.run(
            [self.root / "scripts/flaky", *arguments], env=environment, cwd="/", capture_output=True, text=True, check=False
        )

    def second_run(self, part: str = "tests", command: tuple = ("scripts/test",), report: str = "build/ci/tests.xml"):
        """Runs a part as .ci/run does, and then its failed tests once more."""
        log = self.root / "build/log"
        with log.open("w") as out:
            status = subprocess.run(command, cwd=self.root, stdout=out, stderr=out, check=False).returncode
        self.assertNotEqual(status, 0)
        return self.flaky("--second-run", part, str(status), str(log), str(self.root / report), *command)

    def listed(self) -> list[str]:
        return [line for line in self.flaky().stdout.splitlines() if not line.startswith("no flaky tests")]

    def refused(self, reason: str, ran: int = 1) -> None:
        """The part fails, for this reason, and its first test ran so many times."""
        result = self.second_run()
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stdout, reason)
        self.assertEqual(self.listed(), [])
        if (self.root / "ran-0").exists():
            self.assertEqual((self.root / "ran-0").read_text().strip(), str(ran))

    def test_what_passes_alone_is_forgiven_listed_and_its_log_is_kept(self) -> None:
        name = """Suite/A.Case/"a b"  # GetParam() = [1, ^$*+?|\\]"""
        self.add("Suite.Passes", "true")
        self.add_once(name, "what it printed")
        result = self.second_run()
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("passed at its second run", result.stdout)
        (test,) = self.listed()
        self.assertTrue(test.startswith("scripts/test: Suite/A.Case"), test)
        (log,) = (self.root / "record").glob("tests-Suite_A.Case*.log")
        self.assertIn("what it printed", log.read_text())
        self.assertIn("100% tests passed, 0 tests failed out of 1", log.read_text())

    def test_what_fails_twice_has_failed(self) -> None:
        self.add_once("Suite.Case", times=2)
        self.refused("FAILED tests: Suite.Case .* failed twice", ran=2)

    def test_a_crash_is_not_forgiven(self) -> None:
        self.add("Suite.Case", "kill -SEGV $$")
        self.refused(r"no second run, since Suite.Case: it crashed \(SEGFAULT\)")

    def test_a_crash_of_a_program_that_the_test_started_is_not_forgiven(self) -> None:
        self.add_once("Suite.Case", "terminate called after throwing an instance\\n")
        self.refused("a program crashed: terminate called")

    def test_a_report_of_a_sanitizer_is_not_forgiven(self) -> None:
        for text in (
            "==12==ERROR: AddressSanitizer: heap-use-after-free on address",
            "WARNING: ThreadSanitizer: data race (pid=1)",
            "==9==ERROR: LeakSanitizer: detected memory leaks",
            "a.cpp:3:4: runtime error: signed integer overflow",
        ):
            with self.subTest(text):
                self.setUp()
                self.add_once("Suite.Case", text + "\\n")
                self.refused("a sanitizer reported an error")

    def test_an_unequal_digest_is_not_forgiven(self) -> None:
        self.add_once("Suite.Case", "digest: 12\\na.cpp:3: Failure\\nExpected equality of these values:\\n  second.digest\\n\\n")
        self.refused("a digest was not as expected")

    def test_an_output_that_only_speaks_of_a_digest_is_forgiven(self) -> None:
        self.add_once("Suite.Case", "digest: 12\\na.cpp:3: Failure\\nExpected: took less\\n\\ndigest: 13\\n")
        self.assertEqual(self.second_run().returncode, 0)

    def test_more_than_three_tests_are_not_forgiven(self) -> None:
        for name in "ABCD":
            self.add_once(f"Suite.{name}")
        self.refused("more than 3 tests failed")

    def test_the_tests_of_all_parts_are_counted_together(self) -> None:
        for name in "ABC":
            self.add_once(f"Suite.{name}")
        self.assertEqual(self.second_run("tests").returncode, 0)
        self.add_once("Suite.D")
        result = self.second_run("asan")
        self.assertEqual(result.returncode, 1)
        self.assertIn("more than 3 tests failed", result.stdout)

    def test_what_failed_not_by_a_test_gets_no_second_run(self) -> None:
        self.script("test", "exit 2")
        result = self.second_run()
        self.assertEqual(result.returncode, 1)
        self.assertIn("FAILED tests: scripts/test left no report of a failed test", result.stdout)

    def python(self, text: str, failures: int = 1) -> subprocess.CompletedProcess:
        case = f'<testcase classname="python.tests.test_x.TestY" name="test_z[a b]" file="python/tests/test_x.py">{text}</testcase>'
        self.script(
            "python-test",
            f"""mkdir -p build/python-test
            if [ "$*" = "python/tests/test_x.py::TestY::test_z[a b]" ]; then echo "alone: $*"; exit 0; fi
            echo '<testsuites><testsuite failures="{failures}">{case}</testsuite></testsuites>' >build/python-test/tests.xml
            exit 1""",
        )
        return self.second_run("python", ("scripts/python-test",), "build/python-test/tests.xml")

    def test_a_python_test_is_named_as_pytest_names_it(self) -> None:
        result = self.python('<failure message="assert 1 == 2">E   assert 1 == 2</failure>')
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(self.listed(), ["scripts/python-test: python/tests/test_x.py::TestY::test_z[a b]"])

    def test_a_crash_below_a_python_test_is_not_forgiven(self) -> None:
        result = self.python('<failure message="x">E   assert "Fatal Python error: Segmentation fault" == ""</failure>')
        self.assertEqual(result.returncode, 1)
        self.assertIn("a program crashed", result.stdout)

    def stages(self, rows: str) -> subprocess.CompletedProcess:
        self.script(
            "gpu-check",
            f"""mkdir -p build/gpu; echo "$*" >>{self.root}/ran
            [ "$*" = "--simulated" ] || exit 0
            echo python hung >build/gpu/python.log
            printf '{rows}' >build/gpu/table.txt; exit 1""",
        )
        return self.second_run("gpus", ("scripts/gpu-check", "--simulated"), "build/gpu/table.txt")

    def test_a_stage_of_gpu_check_runs_alone(self) -> None:
        result = self.stages("build   12 s  ok\\npython    60 s  TIME (60 s)\\n")
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual((self.root / "ran").read_text().splitlines(), ["--simulated", "--simulated --only python"])

    def test_the_digest_and_the_build_of_gpu_check_are_not_forgiven(self) -> None:
        for stage in ("digest", "build"):
            self.assertEqual(self.stages(f"{stage}    12 s  FAILED (gpu-check/{stage}.log)\\n").returncode, 1)
            (self.root / "build/ci-run-failed.txt").unlink()

    def test_under_load_a_test_runs_until_it_fails(self) -> None:
        self.add("Suite.Case", f"echo x >>{self.root}/runs; [ $(wc -l <{self.root}/runs) -lt 4 ]")
        result = self.flaky("5", "Suite.Case")
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("FAILED  scripts/test: Suite.Case", result.stdout)
        self.assertEqual(len((self.root / "runs").read_text().split()), 4)

    def test_a_test_that_passes_under_load_is_forgotten_if_asked(self) -> None:
        self.add_once("Suite.Case")
        self.second_run()
        self.assertEqual(self.listed(), ["scripts/test: Suite.Case"])
        self.assertEqual(self.flaky("2").returncode, 0)
        self.assertEqual(self.listed(), ["scripts/test: Suite.Case"])
        self.assertEqual(self.flaky("--forget", "2", "Suite.Case").returncode, 0)
        self.assertEqual(self.listed(), [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(f"Tree.{case}" for case in sys.argv[1:])])
