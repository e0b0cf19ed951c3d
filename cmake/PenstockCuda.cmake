# CUDA is optional: without nvcc everything but cuda:i is built.

# Before project() or enable_language(), since both would choose an architecture themselves.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    set(CMAKE_CUDA_ARCHITECTURES 75 CACHE STRING "GPU architectures; a release build lists several")
  else()
    set(CMAKE_CUDA_ARCHITECTURES 75)
  endif()
endif()

# Sets PENSTOCK_HAVE_CUDA, and PENSTOCK_CUDA_RUNTIME: what to link.
macro(penstock_enable_cuda)
  set(PENSTOCK_HAVE_CUDA OFF)
  if(PENSTOCK_SIMULATED_CUDA)
    find_path(PENSTOCK_CUDA_INCLUDE_DIR cuda_runtime_api.h
              HINTS /usr/local/cuda/include /usr/local/cuda/targets/x86_64-linux/include REQUIRED)
    find_path(PENSTOCK_CCCL_INCLUDE_DIR thrust/for_each.h
              HINTS ${PENSTOCK_CUDA_INCLUDE_DIR}/cccl ${PENSTOCK_CUDA_INCLUDE_DIR} REQUIRED)
    mark_as_advanced(PENSTOCK_CUDA_INCLUDE_DIR PENSTOCK_CCCL_INCLUDE_DIR)
    set(CUDAToolkit_INCLUDE_DIRS ${PENSTOCK_CUDA_INCLUDE_DIR})
    set(PENSTOCK_HAVE_CUDA ON)
    set(PENSTOCK_CUDA_RUNTIME penstock_simulated_cuda)
  elseif(PENSTOCK_CUDA)
    # The toolkit's usual folder is often not on PATH. A hint by environment, not by CMAKE_CUDA_COMPILER:
    # an nvcc that does not work here (too new a g++, say) must not stop the build.
    if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
      find_program(PENSTOCK_NVCC nvcc PATHS /usr/local/cuda/bin)
      mark_as_advanced(PENSTOCK_NVCC)
      if(PENSTOCK_NVCC)
        set(ENV{CUDACXX} ${PENSTOCK_NVCC})
      endif()
    endif()
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      enable_language(CUDA)
    endif()
    if(CMAKE_CUDA_COMPILER AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
      if(CMAKE_VERSION VERSION_LESS 3.25.2) # does not know that nvcc speaks C++20
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
        list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
      endif()
      find_package(CUDAToolkit REQUIRED)
      set(PENSTOCK_HAVE_CUDA ON)
      set(PENSTOCK_CUDA_RUNTIME CUDA::cudart_static)
    else()
      message(STATUS "penstock: no nvcc 12 or newer that works here, building without cuda:i devices")
    endif()
  endif()
endmacro()

# Sources in CUDA C++. Against the simulated runtime they are C++.
function(penstock_cuda_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  if(PENSTOCK_SIMULATED_CUDA)
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS
      "-xc++;-include;${PROJECT_SOURCE_DIR}/testing/simulated_cuda/cuda_language.hpp;-I${PROJECT_SOURCE_DIR};-Wno-unknown-pragmas;-Wno-deprecated-declarations;-Wno-conversion;-Wno-unused-function")
  endif()
endfunction()
