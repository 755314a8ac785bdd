# The CUDA kernels: a library that needs nvcc and no torch. nvcc comes from CUDACXX, the PATH,
# CUDA_HOME, /usr/local/cuda or PyPI's wheels beside torch; without one the kernels are left out, and
# their tests run in emulation only.

file(GLOB _kvlab_wheel_nvcc "${TORCH_ROOT}/../nvidia/cu13/bin")
find_program(KVLAB_NVCC nvcc
             HINTS ENV CUDACXX ENV CUDA_HOME PATHS /usr/local/cuda ${_kvlab_wheel_nvcc}
             PATH_SUFFIXES bin)
set(_kvlab_cuda_kernels OFF)
if(KVLAB_CUDA OR (KVLAB_NVCC AND NOT KVLAB_SANITIZE AND NOT KVLAB_FUZZ))
  set(_kvlab_cuda_kernels ON)
endif()
option(KVLAB_CUDA_KERNELS "Compile the CUDA kernels (needs nvcc, no GPU)" ${_kvlab_cuda_kernels})
if(NOT KVLAB_CUDA_KERNELS)
  return()
endif()
if(NOT KVLAB_NVCC)
  message(FATAL_ERROR "KVLAB_CUDA_KERNELS=ON, but no nvcc was found: install the CUDA toolkit or "
                      "set CUDACXX, or configure with KVLAB_CUDA_KERNELS=OFF")
endif()

if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER "${KVLAB_NVCC}")
endif()
get_filename_component(_kvlab_cuda_root "${KVLAB_NVCC}" DIRECTORY)
get_filename_component(_kvlab_cuda_root "${_kvlab_cuda_root}" DIRECTORY)
if(NOT EXISTS "${_kvlab_cuda_root}/lib64")
  set(CMAKE_CUDA_FLAGS_INIT "-L${_kvlab_cuda_root}/lib") # the wheels' folder, which nvcc does not search
endif()
set(KVLAB_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "Machine code for these; PTX for the last")
set(CMAKE_CUDA_ARCHITECTURES "${KVLAB_CUDA_ARCHITECTURES}")
if(CCACHE_PROGRAM)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake 3.25 does not know nvcc's flag.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()

# kvlab_cuda_library(NAME name SOURCES ... [DEPS ...])
# A static library with .cu sources. Only these include .cuh files; consumers need no nvcc.
function(kvlab_cuda_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  set_target_properties(${ARG_NAME} PROPERTIES CUDA_STANDARD 20)
  if(KVLAB_CUDA)
    # LibTorch sets the architectures (TORCH_CUDA_ARCH_LIST) and brings the one CUDA runtime.
    set_target_properties(${ARG_NAME} PROPERTIES CUDA_ARCHITECTURES OFF CUDA_RUNTIME_LIBRARY Shared)
  else()
    set_target_properties(${ARG_NAME} PROPERTIES CUDA_ARCHITECTURES "${KVLAB_CUDA_ARCHITECTURES}")
  endif()
  target_include_directories(${ARG_NAME} PUBLIC ${PROJECT_SOURCE_DIR})
  target_include_directories(${ARG_NAME} SYSTEM PUBLIC ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  target_compile_definitions(${ARG_NAME} PUBLIC KVLAB_CUDA_KERNELS=1)
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS} PRIVATE kvlab_warnings)
endfunction()
