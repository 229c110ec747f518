//! Macros that mean the same in OpenCL C and in CUDA C++.

use tilewright_codegen::c_family::Dialect;

const OPENCL: &str = "
#define KERNEL __kernel void
#define GLOBAL __global
#define INT long
#define BLOCK ((INT)get_group_id(0))
#define THREAD ((INT)get_local_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define SHARED(name, extent) __local float name[extent]
";

const CUDA: &str = "
#define KERNEL extern \"C\" __global__ void
#define GLOBAL
#define INT long long
#define BLOCK ((INT)blockIdx.x)
#define THREAD ((INT)threadIdx.x)
#define BARRIER __syncthreads()
#define SHARED(name, extent) extern __shared__ float name[]
";

/// The text of kernels in the language of a device.
pub fn text(dialect: Dialect, kernels: &str) -> String {
    let words = match dialect {
        Dialect::OpenCl => OPENCL,
        Dialect::Cuda => CUDA,
    };
    format!("{words}{kernels}")
}
