# LibTorch from the PyPI wheel, as LibTorch::LibTorch.
#
# TORCH_ROOT (cache or environment): the wheel's `torch` folder. Without KVLAB_CUDA only
# libtorch_cpu and libc10 are linked, so that neither a CUDA toolkit nor the wheel's CUDA
# dependencies are needed beyond cupti and cudart; with it the wheel's own TorchConfig is used.

set(TORCH_ROOT "$ENV{TORCH_ROOT}" CACHE PATH "The torch folder of the PyPI wheel")
if(NOT TORCH_ROOT)
  set(_kvlab_cache "$ENV{KVLAB_CACHE}")
  if(NOT _kvlab_cache)
    set(_kvlab_cache "$ENV{HOME}/.cache/kvlab")
  endif()
  file(GLOB _kvlab_torch "${_kvlab_cache}/python/lib/python3*/site-packages/torch")
  if(_kvlab_torch)
    list(GET _kvlab_torch 0 TORCH_ROOT)
  endif()
endif()

if(KVLAB_CUDA)
  find_package(Torch REQUIRED PATHS "${TORCH_ROOT}/share/cmake/Torch" NO_DEFAULT_PATH)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_link_libraries(LibTorch::LibTorch INTERFACE ${TORCH_LIBRARIES})
  target_compile_definitions(LibTorch::LibTorch INTERFACE KVLAB_CUDA=1)
  set(LibTorch_FOUND TRUE)
  return()
endif()

find_path(LibTorch_INCLUDE_DIR ATen/ATen.h PATHS "${TORCH_ROOT}/include" NO_DEFAULT_PATH)
find_library(LibTorch_CPU_LIBRARY torch_cpu PATHS "${TORCH_ROOT}/lib" NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY c10 PATHS "${TORCH_ROOT}/lib" NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run scripts/setup, or set TORCH_ROOT to the wheel's torch folder")

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  set(_site "${TORCH_ROOT}/..")
  file(GLOB _cuda_lib_dirs "${_site}/nvidia/cu13/lib" "${_site}/nvidia/*/lib")
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
    "${LibTorch_INCLUDE_DIR}" "${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
  target_compile_definitions(LibTorch::LibTorch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_link_options(LibTorch::LibTorch INTERFACE "-Wl,--unresolved-symbols=ignore-in-shared-libs")
  foreach(_dir ${TORCH_ROOT}/lib ${_cuda_lib_dirs})
    target_link_options(LibTorch::LibTorch INTERFACE "-Wl,-rpath,${_dir}" "-Wl,-rpath-link,${_dir}")
  endforeach()
  # The wheel's libraries carry RUNPATH, which is not searched for their own dependencies.
  target_link_options(LibTorch::LibTorch INTERFACE "-Wl,--disable-new-dtags")
  target_link_libraries(LibTorch::LibTorch INTERFACE "${LibTorch_CPU_LIBRARY}" "${LibTorch_C10_LIBRARY}")
endif()
