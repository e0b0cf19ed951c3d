# One way of taking the library: WAY is installed, jpeg, shared or subdirectory.

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK}/prefix ${WORK}/app)
string(REPLACE ";" "\\;" PREFIX_PATH "${PREFIX_PATH}")
set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${LAUNCHER}") # what every configuration below begins with
set(common -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${CXX})
# Without the optimiser: what is tested here is what gets found, compiled and linked.
set(quick -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O0)

if(WAY STREQUAL "installed" OR WAY STREQUAL "jpeg")
  run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${WORK}/prefix)
elseif(WAY STREQUAL "shared")
  run(${CMAKE_COMMAND} -S ${ROOT} -B ${WORK}/library ${common} ${quick} -D BUILD_SHARED_LIBS=ON -D PENSTOCK_CUDA=OFF
      -D CMAKE_SHARED_LINKER_FLAGS=-Wl,-z,defs # none needs what another does not export
      -D PENSTOCK_BUILD_TESTS=OFF -D PENSTOCK_BUILD_BENCH=OFF -D PENSTOCK_BUILD_PIPELINES=OFF
      "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}")
  run(${CMAKE_COMMAND} --build ${WORK}/library --parallel 2)
  run(${CMAKE_COMMAND} --install ${WORK}/library --prefix ${WORK}/prefix)
endif()

if(WAY STREQUAL "subdirectory")
  set(library -D PENSTOCK_ROOT=${ROOT} -D PENSTOCK_CUDA=OFF "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}")
else()
  set(library "-DCMAKE_PREFIX_PATH=${WORK}/prefix\;${PREFIX_PATH}" -D EXPECTED_PREFIX=${WORK}/prefix)
endif()
if(WAY STREQUAL "jpeg") # a library of its own, on a picture of the fuzz corpus
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/jpeg_app -B ${WORK}/app ${common} ${quick} ${library})
  run(${CMAKE_COMMAND} --build ${WORK}/app)
  file(GLOB pictures ${BINARY_DIR}/tests/fuzz/corpus/jpeg/*)
  list(GET pictures 0 picture)
  run(${WORK}/app/jpeg_consumer ${picture} ${WORK}/app/picture.ppm)
  return()
endif()
if(WAY STREQUAL "installed") # the headers are the same in all of them
  list(APPEND library -D EVERY_HEADER_ALONE=ON)
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/app -B ${WORK}/app ${common} ${quick} ${library})
run(${CMAKE_COMMAND} --build ${WORK}/app --parallel 2)
run(${WORK}/app/consumer)
