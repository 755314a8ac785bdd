# Compiler settings, and the functions every folder builds its targets with.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Precompiled headers need the sloppiness; the base directory lets every checkout share one cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CCACHE_PROGRAM})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

if(KVLAB_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
                      -fno-sanitize=vptr -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

add_library(kvlab_warnings INTERFACE)
target_compile_options(
  kvlab_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion;-Wno-missing-field-initializers;-Werror=return-type>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict> # GCC 12 bug 105651
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

# kvlab_library(NAME name SOURCES ... [DEPS ...] [TORCH])
# A static library. TORCH adds LibTorch and the shared precompiled ATen header;
# a library without it must build and link without torch.
function(kvlab_library)
  cmake_parse_arguments(ARG "TORCH" "NAME" "SOURCES;DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS} PRIVATE kvlab_warnings)
  if(ARG_TORCH)
    target_link_libraries(${ARG_NAME} PUBLIC kvlab_torch)
    kvlab_reuse_torch_pch(${ARG_NAME})
  endif()
endfunction()

# One precompiled ATen header for every torch target.
function(kvlab_reuse_torch_pch TARGET_NAME)
  if(NOT KVLAB_SANITIZE)
    get_target_property(_type ${TARGET_NAME} TYPE)
    if(_type STREQUAL "EXECUTABLE")
      # The header was compiled with -fPIC; with an executable's -fPIE it would be ignored.
      set_target_properties(${TARGET_NAME} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${TARGET_NAME} PRIVATE -fPIC)
    endif()
    target_precompile_headers(${TARGET_NAME} REUSE_FROM kvlab_torch_pch)
  endif()
endfunction()

# kvlab_test(NAME name SOURCES ... [DEPS ...] [LABEL slow] [TORCH])
# One GoogleTest program, one ctest entry. Tests find golden files below
# KVLAB_TEST_DIR and foreign data through tests/support/shared_data.h.
function(kvlab_test)
  cmake_parse_arguments(ARG "TORCH" "NAME;LABEL" "SOURCES;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${ARG_NAME} PRIVATE KVLAB_TEST_DIR="${PROJECT_SOURCE_DIR}/tests"
                             KVLAB_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             KVLAB_BINARY="${PROJECT_BINARY_DIR}/kvlab")
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} kvlab_warnings kvlab_test_support
                        GTest::gmock GTest::gtest_main)
  if(ARG_TORCH)
    target_link_libraries(${ARG_NAME} PRIVATE kvlab_torch $<LINK_ONLY:kvlab_allocator>)
    if(JEMALLOC_FOUND AND NOT KVLAB_SANITIZE)
      # Nothing else asks for its settings, which are an object of a static library.
      target_link_options(${ARG_NAME} PRIVATE LINKER:--undefined=malloc_conf)
    endif()
    kvlab_reuse_torch_pch(${ARG_NAME})
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
  if(NOT ARG_LABEL)
    set(ARG_LABEL fast)
  endif()
  # The limit ends what hangs; it must not judge how fast the machine is.
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 3600)
endfunction()
