# What a user gets who configures without flags.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Linked into a plugin or a Python module, a static library exports nothing of its own; a shared one exports what
# include/penstock/core/export.hpp says.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(PROJECT_IS_TOP_LEVEL)
  get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT CMAKE_BUILD_TYPE AND NOT multi_config)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  find_program(PENSTOCK_CCACHE ccache)
  mark_as_advanced(PENSTOCK_CCACHE)
  if(PENSTOCK_CCACHE)
    # Builds of other folders and of other checkouts, the Python package's among them, share objects, whatever their paths.
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${PENSTOCK_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
  endif()
endif()

# Flags for our own targets; users of the library do not inherit them.
add_library(penstock_flags INTERFACE)
target_compile_options(penstock_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
                            -ffp-contract=off>
  # In a group, g++ takes a .cpp file for a header, whose classes must not hold types of an anonymous namespace.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>
  # Sound additions of strings are reported by g++ 12: its bug 105651.
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)

# For everything that is built here: one file without it, and inline functions shared with the others lose it too.
if(PENSTOCK_SANITIZE)
  list(JOIN PENSTOCK_SANITIZE "," sanitizers)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${sanitizers}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer> $<$<COMPILE_LANGUAGE:CXX>:-g1>)
  add_link_options(-fsanitize=${sanitizers})
  if("undefined" IN_LIST PENSTOCK_SANITIZE)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=undefined>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # g++'s vptr check reports false positives on classes with hidden type information.
      add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>)
    endif()
  endif()
endif()

# penstock_sources(TARGET FILE...): files of a target, compiled in groups of at most eight, since most of what a file costs are headers
# that all of them include. A group has the name of its first file. Alone are CUDA C++, what Highway compiles once for each instruction
# set, and a file with compile options of its own. -DCMAKE_UNITY_BUILD=OFF, as in preset dev, compiles each file alone.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
function(penstock_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  set(together "")
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} alone REGEX "hwy/foreach_target" LIMIT_COUNT 1)
    if(NOT alone)
      list(APPEND together ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  math(EXPR groups "(${count} + 7) / 8")
  set(position 0)
  set(previous -1)
  foreach(source IN LISTS together)
    math(EXPR number "${position} * ${groups} / ${count}")
    math(EXPR position "${position} + 1")
    if(NOT number EQUAL previous)
      set(previous ${number})
      cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE group)
      cmake_path(RELATIVE_PATH group BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      cmake_path(REMOVE_EXTENSION group)
      string(MAKE_C_IDENTIFIER ${group} group)
    endif()
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()
