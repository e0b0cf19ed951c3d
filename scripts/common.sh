# Sourced by the scripts beside it; not a command.
script=$(realpath "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
jobs=${PENSTOCK_JOBS:-$(nproc)}
# Builds of scripts are for tests: one architecture, if they name no other, from which drivers make code for any GPU.
export CUDAARCHS=${CUDAARCHS:-75}

# Libraries for kinds of images that a build need not have.
image_packages=(libgif-dev libtiff-dev libheif-dev libjxl-dev)
# Libraries for codecs of Parquet files.
table_packages=(libsnappy-dev libzstd-dev)
# A library for the data.yaml of YOLO's data sets.
annotation_packages=(libyaml-cpp-dev)

# The head comment of a script is its help.
usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$script"; }

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

# step TEXT LOG COMMAND...: runs a command into a log, whose end is shown when the command fails. Speaks on stderr:
# stdout belongs to the program that a script ends in.
step() {
  local text=$1 log=$2 begin=$SECONDS
  shift 2
  mkdir -p "$(dirname "$log")"
  echo "$text" >&2
  if ! "$@" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    fail "failed: $* (whole log: $log)"
  fi
  ((SECONDS - begin < 10)) || echo "  $((SECONDS - begin)) s" >&2
}

# Whether CUDA's driver library is installed, without which there are no cuda:i devices.
has_cuda_driver() { [[ $(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null) == *libcuda.so.1* ]]; }

# What to start programs with: nothing, unless a script says otherwise.
calm=()

# build PRESET FOLDER [TARGET [CMAKE-FLAG...]]: configures and builds below build/.
build() {
  local preset=$1 folder=build/$2 target=${3:-all}
  shift $(($# < 3 ? $# : 3))
  step "configuring $folder" "$folder/configure.log" cmake --preset "$preset" -B "$folder" "$@"
  step "building $folder" "$folder/build.log" "${calm[@]}" cmake --build "$folder" --parallel "$jobs" --target "$target"
}

# make_environment [--with-own-packages] PYTHON FOLDER: a virtual environment with pip, which comes from a wheel in
# PIP_FIND_LINKS where the interpreter cannot install it. With the flag it sees the interpreter's own packages. The interpreter
# may be one of a virtual environment, whose packages venv's --system-site-packages would not show.
make_environment() {
  local with_own='' pip packages
  [[ $1 != --with-own-packages ]] || { with_own=1; shift; }
  local python=$1 folder=$2
  if ! "$python" -m venv "$folder"; then
    pip=$(find "${PIP_FIND_LINKS:-/nowhere}" -maxdepth 1 -name 'pip-*.whl' -print -quit)
    [[ -n $pip ]] && "$python" -m venv --clear --without-pip "$folder" &&
      "$folder/bin/python" "$pip/pip" install --no-index "$pip" || return
  fi
  [[ -n $with_own ]] || return 0
  packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') &&
    "$python" - >"$packages/own-packages.pth" <<'END'
import site
for place in site.getsitepackages() + [site.getusersitepackages()] * bool(site.ENABLE_USER_SITE):
    print(f"import site; site.addsitedir({place!r})")
END
}

# run_ctest PRESET [CTEST-FLAGS...]: runs the tests of build/PRESET, writes what they print to tests.xml there (JUnit's format),
# and prints ctest's verdict once more as the very last line. Exit status: ctest's, which is 8 where a test failed.
run_ctest() {
  local log status=0
  log=$(mktemp)
  rm -f "build/$1/tests.xml"
  "${calm[@]}" ctest --preset "$1" --output-junit tests.xml --test-output-size-failed 10000000 "${@:2}" | tee "$log" || status=$?
  grep '% tests passed' "$log" || true
  rm -f "$log"
  return $status
}

# Our C++ and CUDA files, one a line.
sources() {
  local tops=() top
  for top in include src testing pipelines bench python tests; do [[ ! -d $top ]] || tops+=("$top"); done
  find "${tops[@]}" -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.h' \) | sort
}
