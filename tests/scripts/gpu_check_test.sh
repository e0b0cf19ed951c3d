#!/usr/bin/env bash
# scripts/gpu-check on a machine of stubs: a driver, a CMake, a ctest and the programs of a build that do what a case tells them.
#
#   gpu_check_test.sh CASE
#
# shellcheck disable=SC2016,SC2031  # stubs expand their own variables; common.sh sets root in a subshell
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=$work/build
real_python=$(command -v python3)

# stub FILE: an executable with what is on stdin.
stub() {
  mkdir -p "$(dirname "$1")"
  { echo '#!/usr/bin/env bash'; cat; } >"$1"
  chmod +x "$1"
}
stub "$work/bin/nvidia-smi" <<'END'
case $* in
  -L) for i in $(seq "${GPUS:-2}"); do echo "GPU $i: Stub"; done ;;
  *=name*) echo Stub ;;
  *=compute_cap*) echo 9.0 ;;
  *=driver_version*) echo 1.2 ;;
esac
END
stub "$work/bin/nvcc" <<<'echo "release 13.0,"'
# Its report is that of a run in which nothing was skipped, unless a case has another one.
stub "$work/bin/ctest" <<END
while ((\$#)); do
  [[ \$1 != --output-junit ]] || { [[ -f $work/junit.xml ]] && cat $work/junit.xml || echo '<testsuite/>'; } >"\$2"
  shift
done
echo "100% tests passed"
END
stub "$work/bin/cmake" <<'END'
echo "cmake $*"
END
# A python3 without torch and NCCL, unless a case puts NCCL into nvidia.
stub "$work/bin/python3" <<END
case "\$*" in
  *"import torch"*) exit 1 ;;
  *"pip list"*) ;;
  *nvidia.nccl*) [[ -d $work/nvidia ]] && echo "$work/nvidia/nccl/\${!#}" ;;
  *) exec $real_python "\$@" ;;
esac
END
stub "$build/pipelines/penstock-throughput" <<'END'
echo '{"digest": "12ab"}'
[[ $* != *--timeline* ]] || echo "throughput 1 images/s"
while (($#)); do [[ $1 != --timeline ]] || echo '[]' >"$2"; shift; done
END
# As many steps as it is told, or all of them.
stub "$build/pipelines/penstock-train-classifier" <<'END'
steps=4
while (($#)); do
  case $1 in --losses) losses=$2 ;; --steps) steps=$2; : >"$losses" ;; esac
  shift
done
seq "$steps" >>"$losses"
END
stub "$build/bench/penstock_gpu_bench" <<'END'
for flag in "$@"; do [[ $flag != --benchmark_out=* ]] || out=${flag#*=}; done
row() { echo "{\"name\": \"$1\", \"run_name\": \"$1\", \"run_type\": \"iteration\", \"bytes_per_second\": $2}"; }
echo "{\"benchmarks\": [$(row BM_ToDevice_Ceiling_BareCopy/1 5e9), $(row BM_ToDevice_Transfer/1 4e9)]}" >"$out"
END
stub "$build/bench/penstock_nccl_bench" <<<'echo "all_reduce f32 97%"'
stub "$build/bench/penstock_gpu_jpeg_bench" <<<'echo "| 256 | 1.00 |"'
mkdir -p "$build"
printf '%s\n' CMAKE_CUDA_COMPILER:FILEPATH=/nvcc PENSTOCK_NCCL_INCLUDE_DIR:PATH=/include >"$build/CMakeCache.txt"
export PATH=$work/bin:$PATH PENSTOCK_SKIP_SETUP=1
unset CUDA_VISIBLE_DEVICES

status=0
# check FLAGS...: its exit status is in $status, and what it said in $said.
check() {
  status=0
  said=$("$root/scripts/gpu-check" --build "$build" "$@" 2>&1) || status=$?
  echo "$said"
}
fail() { echo "FAILED: $*"; exit 1; }
says() { grep -qE -- "$1" <<<"$said" || fail "expected '$1'"; }
ends_with() { ((status == $1)) || fail "expected exit status $1, found $status"; }
has() { tar -tzf "$build/gpu-check.tar.gz" "gpu-check/$1" >/dev/null || fail "$1 is not in the tar"; }

AnUnknownStageIsRefusedByName() {
  check --only tests,nonsense
  says "unknown stage 'nonsense'; there are build tests"
  ends_with 1
}
AllStagesAreOkOnSimulatedGpus() {
  printf '%s\n' PENSTOCK_SIMULATED_CUDA:BOOL=ON PENSTOCK_NCCL_INCLUDE_DIR:PATH=/include >"$build/CMakeCache.txt"
  rm "$work"/bin/{nvidia-smi,nvcc}
  check --simulated --only build,tests,digest,train,bench,sanitizer
  for stage in build tests digest train bench-copy bench-transform bench-jpeg bench-nccl bench-loop; do says "^$stage +[0-9]+ s  ok$"; done
  says '^sanitizer +[0-9]+ s  SKIPPED \(not in a simulation\)$'
  ends_with 0
}
AnOrdinaryBuildIsNoSimulation() {
  check --simulated --only build
  says '^build .* FAILED'
  says 'PENSTOCK_SIMULATED_CUDA is not ON'
  ends_with 1
}
AFailingStageSaysSoAndTheNextOnesRun() {
  stub "$work/bin/ctest" <<<'echo "3 tests failed"; exit 8'
  check --only tests,digest
  says '^tests +[0-9]+ s  FAILED \(gpu-check/tests.log\)$'
  says '^3 tests failed'
  says '^digest +[0-9]+ s  ok$'
  ends_with 1
  has tests.log
  has table.txt
}
AProgramThatWasNotBuiltFailsItsStages() {
  rm "$build/bench/penstock_nccl_bench"
  check --only bench-nccl,bench-copy
  says 'penstock_nccl_bench was not built'
  says '^bench-nccl .* FAILED'
  says '^bench-copy .* ok$'
  ends_with 1
}
TestsThatWereNotBuiltFailTheirStage() {
  stub "$work/bin/ctest" <<'END'
[[ $* != *-N* ]] || echo "  Test #7: penstock_loader_gpu_test_NOT_BUILT"
END
  check --only tests
  says '^not built: penstock_loader_gpu_test_NOT_BUILT'
  ends_with 1
}
ATestThatSkipsIsNotOk() {
  cat >"$work/junit.xml" <<'END'
<testsuite>
<testcase name="CudaLoader.CopiesAll" status="run"/>
<testcase name="CudaLoader.Finds/2" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>no GPU here</system-out></testcase>
<testcase name="CudaLoader.IsAPartOfAnother" status="disabled"><skipped message="Disabled"/></testcase>
</testsuite>
END
  check --only tests
  says '^tests +[0-9]+ s  SKIPPED \(1 tests: CudaLoader.Finds/2\)$'
  ends_with 3
}
ATestOfSeveralGpusIsNamedWhereThereIsOne() {
  cat >"$work/junit.xml" <<'END'
<testsuite>
<testcase name="CudaRules.TwoDevices" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>a.cpp:71: Skipped
one GPU here</system-out></testcase>
</testsuite>
END
  check --only tests
  says '^tests +[0-9]+ s  ok$'
  says '^    not tested on one GPU: 1 tests, CudaRules.TwoDevices$'
  ends_with 0
}
# pytest_stub: a python3 with torch, whose virtual environments are stubs, too; what is on stdin stands for pytest. A wheel that
# exists already leaves nothing to build.
pytest_stub() {
  stub "$work/bin/python3" <<END
case "\$*" in
  *"import torch"*) ;;
  "-m venv "*) install -D $work/bin/environment "\$3/bin/python" ;;
  *) exec $real_python "\$@" ;;
esac
END
  stub "$work/bin/environment" <<END
case "\$*" in
  *purelib*) echo $work ;;
  *pytest*test_cuda.py*test_gpu.py*test_torch.py*test_jax.py*) $(cat) ;;
esac
END
}
ACrashOfPythonIsShownWithItsFrames() {
  pytest_stub <<<'kill -SEGV $$'
  stub "$work/bin/cuda-gdb" <<<'echo "#0  0x0 in penstock::open_transfer ()"'
  PENSTOCK_WHEEL=none.whl check --only python
  says '^python .* FAILED'
  says '^    #0  0x0 in penstock::open_transfer'
  ends_with 1
}
APythonTestThatSkipsIsNotOk() {
  pytest_stub <<'END'
echo "SKIPPED [1] ../python/tests/test_gpu.py:12: no GPU, or a torch without CUDA"
echo "9 passed, 1 skipped in 2.00s"
END
  PENSTOCK_WHEEL=none.whl check --only python
  says '^python .* SKIPPED \(tests: no GPU, or a torch without CUDA\)$'
  says '^    9 passed, 1 skipped in 2.00s$'
  ends_with 3
}
WhatIsNotThereIsNotOk() {
  check --only python,sanitizer
  says 'SKIPPED \(python3 has no torch with CUDA\)'
  says 'SKIPPED \(no compute-sanitizer here'
  ends_with 3
}
ASanitizerThatRefusesTheDeviceIsNotOk() {
  stub "$work/bin/compute-sanitizer" <<<'echo "Error: Device not supported"; exit 1'
  stub "$build/tests/device/penstock_device_gpu_test" </dev/null
  stub "$build/tests/loader/penstock_loader_gpu_test" </dev/null
  check --only sanitizer
  says "SKIPPED \(compute-sanitizer says 'Device not supported' here\)"
  ends_with 3
}
AnErrorUnderTheSanitizerFails() {
  stub "$work/bin/compute-sanitizer" <<<'[[ $* != *initcheck*device* ]] || exit 9'
  stub "$build/tests/device/penstock_device_gpu_test" </dev/null
  stub "$build/tests/loader/penstock_loader_gpu_test" </dev/null
  check --only sanitizer
  says '^sanitizer .* FAILED'
  ends_with 1
}
AStageEndsAtItsTimeLimitWithItsChildren() {
  stub "$work/bin/ctest" <<<"echo begun; sleep 300 & echo \$! >$work/pid; wait"
  # A stage begins only if 5 s are left: a busy machine has 15 for what comes before.
  check --only tests,digest --within 20
  says '^tests +[0-9]+ s  TIME \(([5-9]|1[0-9]|20) s\)$'
  says '^digest +0 s  SKIPPED \(no time left of 20 s\)$'
  ends_with 1
  # Whoever has lost its parent may stay for a while, as a zombie.
  for _ in {1..600}; do grep -q '^State:[^Z]*$' "/proc/$(cat "$work/pid")/status" 2>/dev/null || return 0; sleep 0.1; done
  fail "the test still runs"
}
AnInterruptedRunHasItsTableAndTar() {
  stub "$work/bin/ctest" <<<"touch $work/begun; sleep 300"
  "$root/scripts/gpu-check" --build "$build" --only tests,digest >"$work/said" 2>&1 &
  # Begun, and waited for: before that the script would not know yet whom to end.
  until [[ -e $work/begun && $(awk '{ print $3 }' "/proc/$!/stat") == S ]]; do sleep 0.1; done
  kill $!
  wait $! || status=$?
  said=$(cat "$work/said")
  says '^tests .* FAILED \(interrupted\)$'
  ends_with 1
  has table.txt
}
TheTarHasAtMostSixteenMebibytes() {
  stub "$work/bin/ctest" <<<'head -c 22M /dev/urandom | base64; echo "the end"; exit 8'
  check --only tests >"$work/said"
  grep -v '^[A-Za-z0-9+/=]*$' "$work/said" || true
  says '^cut to its last MB, .* tests.log, 29 MiB'
  (($(stat -c %s "$build/gpu-check.tar.gz") <= 16 << 20)) || fail "it has more"
  tar -xzOf "$build/gpu-check.tar.gz" gpu-check/tests.log | tail -n 1 | grep -qx "the end" || fail "the log's end is missing"
}
AnotherDigestThanTheHostsFails() {
  stub "$build/pipelines/penstock-throughput" <<<'[[ $* == *cuda:0,1* ]] && echo "{\"digest\": \"12ac\"}" || echo "{\"digest\": \"12ab\"}"'
  check --only digest
  says '^    cuda:0,0 12ab$'
  says '^    cuda:0,1 12ac$'
  says '^digest .* FAILED'
  ends_with 1
}
ADigestOfNothingFails() {
  stub "$build/pipelines/penstock-throughput" <<<'echo "{\"digest\": \"0000\"}"'
  check --only digest
  says '^digest .* FAILED'
}
AResumeThatRepeatsStepsFails() {
  stub "$build/pipelines/penstock-train-classifier" <<'END'
while (($#)); do [[ $1 != --losses ]] || losses=$2; shift; done
seq 5 >>"$losses"
END
  check --simulated --only train
  says 'expected 8 steps before and after the resume, found 10'
  says '^train .* FAILED'
}
ABenchmarkThatFailedIsNotOk() {
  stub "$build/bench/penstock_gpu_bench" <<'END'
for flag in "$@"; do [[ $flag != --benchmark_out=* ]] || out=${flag#*=}; done
echo '{"benchmarks": [{"name": "BM_ToDevice", "error_occurred": true, "error_message": "no GPU here"}]}' >"$out"
END
  check --only bench-copy
  says '^bench-copy .* FAILED'
  says 'BM_ToDevice: no GPU here'
}
ABenchmarkWithoutRowsIsNotOk() {
  stub "$build/bench/penstock_gpu_bench" <<'END'
for flag in "$@"; do [[ $flag != --benchmark_out=* ]] || : >"${flag#*=}"; done
END
  check --only bench-copy
  says '^bench-copy .* FAILED'
  says 'no rows'
}
SpeedsStandBesideTheirCeilings() {
  check --only bench-copy
  says '^    ToDevice_Transfer/1 .* 4.0 GB/s  80% of BareCopy.s 5.0$'
  ends_with 0
}
TwoProcessesShareASingleGpu() {
  stub "$build/bench/penstock_nccl_bench" <<<'echo "rank $RANK of $WORLD_SIZE, $NCCL_HOSTID, port $MASTER_PORT, $*"'
  GPUS=1 check --only bench-nccl
  says '^    rank 0 of 2, penstock-0, port [0-9]+, 4 5$'
  ends_with 0
}
ItConfiguresForThisGpuAndPythonsNccl() {
  rm "$build/CMakeCache.txt"
  mkdir -p "$work/nvidia/nccl/include" "$work/nvidia/nccl/lib"
  touch "$work/nvidia/nccl/include/nccl.h" "$work/nvidia/nccl/lib/libnccl.so.2"
  stub "$work/bin/cmake" <<END
echo "cmake \$*; \$PENSTOCK_NCCL_LIBRARY"
[[ \$* != *--preset* ]] || printf '%s\n' CMAKE_CUDA_COMPILER:FILEPATH=/nvcc PENSTOCK_NCCL_INCLUDE_DIR:PATH=/x >$build/CMakeCache.txt
END
  local log=$build/gpu-check/build.log
  check --only build
  ends_with 0
  grep -E -- "-B $build .*ARCHITECTURES=90 -DPENSTOCK_NCCL_INCLUDE_DIR=$work/nvidia/nccl/include; $work/nvidia/nccl/lib/libnccl.so.2" "$log" ||
    fail "other flags: $(cat "$log")"
  grep -q -- '--target penstock_gpu_check' "$log" || fail "nothing was built: $(cat "$log")"
  check --only build # nothing has changed
  ! grep -q -- --preset "$log" || fail "it configured again"
  rm -r "$work/nvidia"
  check --only build
  grep -q -- --preset "$log" || fail "it did not configure again for other flags"
}
ABuildWithoutNcclsHeaderFails() {
  echo CMAKE_CUDA_COMPILER:FILEPATH=/nvcc >"$build/CMakeCache.txt"
  check --only build
  says 'CMake found no nccl.h'
  ends_with 1
}
ItNamesAMissingDriver() {
  rm "$work/bin/nvidia-smi"
  PATH=$work/bin:/usr/bin:/bin
  ! command -v nvidia-smi || exit 77
  check
  says 'no nvidia-smi: this machine has no NVIDIA driver'
  ends_with 1
}

# Of what it stands on.
AnEnvironmentMadeFromOneSeesItsPackages() {
  "$real_python" -m venv --without-pip "$work/first"
  packages=$("$work/first/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "value = 7" >"$packages/only_there.py"
  ( # shellcheck source=scripts/common.sh
    source "$root/scripts/common.sh" && make_environment --with-own-packages "$work/first/bin/python" "$work/second")
  [[ $("$work/second/bin/python" -c 'import only_there; print(only_there.value)') == 7 ]] || fail "it does not"
  "$work/second/bin/python" -m pip --version
}
OfflineDepsNeedsAVersionOfPython() {
  said=$("$root/scripts/offline-deps" --python three "$work/deps" 2>&1) && fail "it was taken"
  says "needs a version such as 3.12, found 'three'"
}
OfflineDepsSaysWhatIsTooLargeToCarry() {
  grep -q 'VERSION_ID="12"' /etc/os-release || exit 77
  stub "$work/bin/apt-get" <<<'touch one.deb'
  stub "$work/bin/dpkg" <<'END'
mkdir -p "$3/usr/include/x86_64-linux-gnu" "$3/usr/lib/x86_64-linux-gnu"
touch "$3/usr/include/x86_64-linux-gnu/jconfig.h" "$3/usr/lib/x86_64-linux-gnu/"{libz.so,libz.a}
END
  stub "$work/bin/python3" <<END
if [[ \$2 == zipfile ]]; then
  mkdir -p "\$5/nvidia/cu13/"{include,lib} && touch "\$5/nvidia/cu13/"{include/nvjpeg.h,lib/libnvjpeg.so.13}
  exit
fi
[[ \$* == *"--python-version 3.12 --only-binary=:all:"* ]] || exit 1
mkdir -p $work/deps/wheels && head -c 41M /dev/zero >$work/deps/wheels/numpy.whl
END
  said=$("$root/scripts/offline-deps" --python 3.12 "$work/deps" 2>&1) && fail "it was taken"
  says '4[12] MiB, and at most 40 are to be carried'
  says '41.0 MiB  wheels/numpy.whl'
  [[ -e $work/deps/usr/include/nvjpeg.h && -e $work/deps/usr/lib/x86_64-linux-gnu/libnvjpeg.so.13 ]] || fail "no nvJPEG"
  [[ -e $work/deps/usr/lib/x86_64-linux-gnu/libz.so && ! -e $work/deps/usr/lib/x86_64-linux-gnu/libz.a ]] || fail "the wrong library"
}

"$1"
