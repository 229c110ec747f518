//! What CUDA C++ and OpenCL C call things.

use tilewright_ir::nest::{Axis, Sync};
use tilewright_ir::{BinaryOp, DType};
use tilewright_target::GpuApi;

use super::c_expr::CExpr;

/// The type that memory has for an element. 16-bit floats are their bits, and truth values a byte.
pub(super) fn memory_type(api: GpuApi, dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::UInt8 => "unsigned char",
        DType::Float16 | DType::BFloat16 | DType::UInt16 => "unsigned short",
        _ => value_type(api, dtype),
    }
}

/// The type of a value. 16-bit floats are computed with in single precision.
pub(super) fn value_type(api: GpuApi, dtype: DType) -> &'static str {
    let cuda = api == GpuApi::Cuda;
    match dtype {
        DType::Bool => "bool",
        DType::Int8 if cuda => "signed char",
        DType::Int8 => "char",
        DType::Int16 => "short",
        DType::Int32 => "int",
        DType::Int64 if cuda => "long long",
        DType::Int64 => "long",
        DType::UInt8 => "unsigned char",
        DType::UInt16 => "unsigned short",
        DType::UInt32 => "unsigned int",
        DType::UInt64 if cuda => "unsigned long long",
        DType::UInt64 => "unsigned long",
        DType::Float16 | DType::BFloat16 | DType::Float32 => "float",
        DType::Float64 => "double",
    }
}

/// The type of some elements side by side in memory.
pub(super) fn lanes_type(api: GpuApi, dtype: DType, lanes: i64) -> String {
    let element = match (dtype, api) {
        (DType::Int8, _) => "char",
        (DType::Bool | DType::UInt8, _) => "uchar",
        (DType::Float16 | DType::BFloat16 | DType::UInt16, _) => "ushort",
        (DType::UInt32, _) => "uint",
        (DType::Int64, GpuApi::Cuda) => "longlong",
        (DType::UInt64, GpuApi::Cuda) => "ulonglong",
        (DType::UInt64, GpuApi::OpenCl) => "ulong",
        _ => value_type(api, dtype),
    };
    format!("{element}{lanes}")
}

/// The unsigned type of as many bits, in which sums wrap.
pub(super) fn wrapping_type(api: GpuApi, dtype: DType) -> &'static str {
    match dtype.bits() {
        64 => value_type(api, DType::UInt64),
        _ => "unsigned int",
    }
}

/// The end of a 64-bit number.
pub(super) fn long_suffix(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => "LL",
        GpuApi::OpenCl => "L",
    }
}

/// What stands before the type of a pointer to the device's memory.
pub(super) fn global(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => "",
        GpuApi::OpenCl => "__global ",
    }
}

/// What stands before the type of a pointer to shared memory.
pub(super) fn shared(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => "",
        GpuApi::OpenCl => "__local ",
    }
}

/// What promises that nothing else points there.
pub(super) fn restrict(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => " __restrict__",
        GpuApi::OpenCl => " restrict",
    }
}

/// The block that runs.
pub(super) fn block_index(api: GpuApi, axis: Axis) -> CExpr {
    let index = match api {
        GpuApi::Cuda => CExpr::atom(format!("blockIdx.{}", axis.name())),
        GpuApi::OpenCl => CExpr::atom(format!("get_group_id({})", axis as usize)),
    };
    index.cast("int")
}

/// The thread of its block.
pub(super) fn thread_index(api: GpuApi, axis: Axis) -> CExpr {
    let index = match api {
        GpuApi::Cuda => CExpr::atom(format!("threadIdx.{}", axis.name())),
        GpuApi::OpenCl => CExpr::atom(format!("get_local_id({})", axis as usize)),
    };
    index.cast("int")
}

/// Whether the thread is the first of its block along an axis.
pub(super) fn is_first_thread(api: GpuApi, axis: Axis) -> CExpr {
    CExpr::binary(BinaryOp::Equal, &thread_index(api, axis), &CExpr::atom("0"))
}

/// How the threads of a block wait. In OpenCL every store is done at once.
pub(super) fn sync(api: GpuApi, sync: Sync) -> Option<String> {
    match (api, sync) {
        (GpuApi::Cuda, Sync::Barrier) => Some("__syncthreads();".to_owned()),
        (GpuApi::Cuda, Sync::Commit) => Some("asm volatile(\"cp.async.commit_group;\");".to_owned()),
        (GpuApi::Cuda, Sync::Wait(groups)) => {
            Some(format!("asm volatile(\"cp.async.wait_group {groups};\" ::: \"memory\");"))
        }
        (GpuApi::OpenCl, Sync::Barrier) => {
            Some("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);".to_owned())
        }
        (GpuApi::OpenCl, Sync::Commit | Sync::Wait(_)) => None,
    }
}

/// What makes the compiler write out a loop.
pub(super) fn unroll(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => "#pragma unroll",
        GpuApi::OpenCl => "__attribute__((opencl_unroll_hint))",
    }
}

/// The head of a kernel up to its name.
pub(super) fn kernel_head(api: GpuApi, block: [u32; 3]) -> String {
    let [x, y, z] = block;
    match api {
        GpuApi::Cuda => format!("extern \"C\" __global__ void __launch_bounds__({})", x * y * z),
        GpuApi::OpenCl => format!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z}))) void"),
    }
}
