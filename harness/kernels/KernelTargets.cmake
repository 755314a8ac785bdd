# Compiler settings of the kernels.

# Files of the calling folder that may use AVX2 and FMA, optimised in every build as those below.
function(kvlab_avx2_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "-O3;-mavx2;-mfma")
endfunction()

# Files of the calling folder that may use AVX-512. Optimised in every build, so that inline functions
# of shared headers leave no AVX-512 copy that the linker could pick for other callers. GCC 12 takes the
# intrinsics' undefined registers for uninitialised ones.
set(kvlab_avx512_options
    -O3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mfma -mavx2 -Wno-uninitialized
    -Wno-maybe-uninitialized)
function(kvlab_avx512_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${kvlab_avx512_options}")
endfunction()

# The same for files that use tile registers too.
function(kvlab_amx_sources)
  set_source_files_properties(
    ${ARGN} PROPERTIES COMPILE_OPTIONS "${kvlab_avx512_options};-mamx-tile;-mamx-bf16")
endfunction()

# `#pragma omp simd` without OpenMP's run time; no contraction left to the compiler's taste, so that
# a level gives the same bits from every compiler.
function(kvlab_kernel_options TARGET_NAME)
  target_compile_options(${TARGET_NAME} PRIVATE -fopenmp-simd -ffp-contract=off -Wno-ignored-attributes)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_definitions(${TARGET_NAME} PRIVATE KVLAB_X86_64=1)
  endif()
endfunction()
