# Third-party packages, each found in one place.

find_package(absl REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(GTest REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(Boost 1.74 REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(JEMALLOC IMPORTED_TARGET jemalloc>=5.1)
if(NOT JEMALLOC_FOUND)
  message(STATUS "jemalloc (libjemalloc-dev) not found: the C library's malloc, slower decoding")
endif()

if(KVLAB_CUDA)
  if(NOT DEFINED ENV{TORCH_CUDA_ARCH_LIST} AND NOT DEFINED TORCH_CUDA_ARCH_LIST)
    set(TORCH_CUDA_ARCH_LIST "8.0;9.0+PTX")
  endif()
  find_package(CUDAToolkit REQUIRED)
  if(NOT TARGET CUDA::nvToolsExt AND TARGET CUDA::nvtx3)
    # CUDA 13 has no nvToolsExt library any more; older Torch configs ask for it.
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
    target_link_libraries(CUDA::nvToolsExt INTERFACE CUDA::nvtx3)
  endif()
endif()
find_package(LibTorch REQUIRED)

# What torch-linked code of ours links. The wheel ships newer fmt headers than
# Debian, so fmt is used header-only everywhere.
add_library(kvlab_torch INTERFACE)
target_link_libraries(kvlab_torch INTERFACE LibTorch::LibTorch fmt::fmt-header-only)

add_library(kvlab_torch_pch STATIC ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp)
target_link_libraries(kvlab_torch_pch PUBLIC kvlab_torch PRIVATE kvlab_warnings)
target_include_directories(kvlab_torch_pch PRIVATE ${PROJECT_SOURCE_DIR})
if(NOT KVLAB_SANITIZE)
  target_precompile_headers(kvlab_torch_pch PRIVATE <ATen/ATen.h>)
endif()
