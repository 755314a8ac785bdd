// What the .cu files of this folder export: each queues its kernels and returns a cudaError_t.
#pragma once

namespace kvlab {

struct CudaDecodeArgs;
struct CudaGatherArgs;

int launch_decode_attention(const CudaDecodeArgs& args, void* stream);
int launch_gather(const CudaGatherArgs& args, void* stream);

}  // namespace kvlab
