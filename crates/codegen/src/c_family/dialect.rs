//! The spellings of types, indices, barriers and hints in CUDA C++ and OpenCL C.

use tilewright_ir::nest::{Axis, Sync};
use tilewright_ir::{BinaryOp, DType};
use tilewright_target::GpuApi;

use super::c_expr::CExpr;

/// The type of an element in memory. A 16-bit float is stored as its bits, and a truth value as a
/// byte.
pub(super) fn memory_type(api: GpuApi, dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::UInt8 => "unsigned char",
        DType::Float16 | DType::BFloat16 | DType::UInt16 => "unsigned short",
        _ => value_type(api, dtype),
    }
}

/// The type of a value in an expression. 16-bit floats are computed in single precision.
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

/// The vector type of `lanes` neighbouring elements in memory.
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

/// The unsigned type in which sums of a type wrap: 64 bits for 64-bit types, and 32 bits for all
/// others.
pub(super) fn wrapping_type(api: GpuApi, dtype: DType) -> &'static str {
    match dtype.bits() {
        64 => value_type(api, DType::UInt64),
        _ => "unsigned int",
    }
}

/// The suffix of a 64-bit integer literal.
pub(super) fn long_suffix(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => "LL",
        GpuApi::OpenCl => "L",
    }
}

/// The address space qualifier of a pointer to device memory.
pub(super) fn global(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => "",
        GpuApi::OpenCl => "__global ",
    }
}

/// The address space qualifier of a pointer to shared memory.
pub(super) fn shared(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => "",
        GpuApi::OpenCl => "__local ",
    }
}

/// The qualifier that promises that no other pointer leads to the same memory.
pub(super) fn restrict(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => " __restrict__",
        GpuApi::OpenCl => " restrict",
    }
}

/// The index of the running block along an axis.
pub(super) fn block_index(api: GpuApi, axis: Axis) -> CExpr {
    let index = match api {
        GpuApi::Cuda => CExpr::atom(format!("blockIdx.{}", axis.name())),
        GpuApi::OpenCl => CExpr::atom(format!("get_group_id({})", axis as usize)),
    };
    index.cast("int")
}

/// The index of the running thread in its block along an axis.
pub(super) fn thread_index(api: GpuApi, axis: Axis) -> CExpr {
    let index = match api {
        GpuApi::Cuda => CExpr::atom(format!("threadIdx.{}", axis.name())),
        GpuApi::OpenCl => CExpr::atom(format!("get_local_id({})", axis as usize)),
    };
    index.cast("int")
}

/// The condition that the thread is the first of its block along an axis.
pub(super) fn is_first_thread(api: GpuApi, axis: Axis) -> CExpr {
    CExpr::binary(BinaryOp::Equal, &thread_index(api, axis), &CExpr::atom("0"))
}

/// The statement with which the threads of a block wait. OpenCL has no asynchronous stores, so it
/// needs no statement for `Commit` and `Wait`.
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

/// The hint that makes the compiler unroll a loop.
pub(super) fn unroll(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => "#pragma unroll",
        GpuApi::OpenCl => "__attribute__((opencl_unroll_hint))",
    }
}

/// The declaration of a kernel up to its name.
pub(super) fn kernel_head(api: GpuApi, block: [u32; 3]) -> String {
    let [x, y, z] = block;
    match api {
        GpuApi::Cuda => format!("extern \"C\" __global__ void __launch_bounds__({})", x * y * z),
        GpuApi::OpenCl => format!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z}))) void"),
    }
}
