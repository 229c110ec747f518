//! Defines the two languages that kernels are written in, CUDA C++ and OpenCL C. A [`Dialect`]
//! returns the spellings of types, indices, barriers and hints, and the features of its language.
//!
//! A [`GpuApi`] is an interface to a driver. Each API takes the text of one dialect.

use tilewright_ir::nest::{Axis, Sync};
use tilewright_ir::{BinaryOp, DType, ReduceOp};
use tilewright_target::GpuApi;

use super::c_expr::CExpr;

/// A C-like language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// CUDA C++, NVIDIA's language.
    Cuda,
    /// OpenCL C.
    OpenCl,
}

/// The dialect that devices of an API take.
impl From<GpuApi> for Dialect {
    fn from(api: GpuApi) -> Dialect {
        match api {
            GpuApi::Cuda => Dialect::Cuda,
            GpuApi::OpenCl => Dialect::OpenCl,
        }
    }
}

impl Dialect {
    /// The name of the language for people.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Cuda => "cuda",
            Dialect::OpenCl => "opencl",
        }
    }

    /// Whether the threads of a warp can pass values to each other without memory.
    pub(super) fn has_shuffles(self) -> bool {
        self == Dialect::Cuda
    }

    /// Whether a barrier inside a condition is safe. OpenCL allows it, but PoCL 3.1 hangs or
    /// crashes on it.
    pub(super) fn has_barriers_in_conditions(self) -> bool {
        self == Dialect::Cuda
    }

    /// Whether the functions `fma` and `fmaf` are always fast.
    pub(super) fn has_fast_multiply_add(self) -> bool {
        self == Dialect::Cuda
    }

    /// The suffix of a mathematical function for a type of operands. OpenCL overloads its
    /// functions.
    pub(super) fn function_suffix(self, dtype: DType) -> &'static str {
        match (self, dtype) {
            (Dialect::Cuda, DType::Float32) => "f",
            _ => "",
        }
    }

    /// The qualifiers of a helper function.
    pub(super) fn helper_head(self) -> &'static str {
        match self {
            Dialect::Cuda => "static __device__ __forceinline__",
            Dialect::OpenCl => "static inline",
        }
    }

    /// The declaration of a kernel's shared memory.
    pub(super) fn shared_declaration(self, bytes: i64) -> String {
        match self {
            Dialect::Cuda => "extern __shared__ __align__(16) unsigned char tw_shared[];".to_owned(),
            Dialect::OpenCl => {
                format!("__local __attribute__((aligned(16))) unsigned char tw_shared[{bytes}];")
            }
        }
    }

    /// The type of an element in memory. A 16-bit float is stored as its bits, and a truth value as
    /// a byte.
    pub(super) fn memory_type(self, dtype: DType) -> &'static str {
        match dtype {
            DType::Bool | DType::UInt8 => "unsigned char",
            DType::Float16 | DType::BFloat16 | DType::UInt16 => "unsigned short",
            _ => self.value_type(dtype),
        }
    }

    /// The type of a value in an expression. 16-bit floats are computed in single precision.
    pub(super) fn value_type(self, dtype: DType) -> &'static str {
        let cuda = self == Dialect::Cuda;
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
    pub(super) fn lanes_type(self, dtype: DType, lanes: i64) -> String {
        let element = match (dtype, self) {
            (DType::Int8, _) => "char",
            (DType::Bool | DType::UInt8, _) => "uchar",
            (DType::Float16 | DType::BFloat16 | DType::UInt16, _) => "ushort",
            (DType::UInt32, _) => "uint",
            (DType::Int64, Dialect::Cuda) => "longlong",
            (DType::UInt64, Dialect::Cuda) => "ulonglong",
            (DType::UInt64, Dialect::OpenCl) => "ulong",
            _ => self.value_type(dtype),
        };
        format!("{element}{lanes}")
    }

    /// The unsigned type in which sums of a type wrap: 64 bits for 64-bit types, and 32 bits for
    /// all others.
    pub(super) fn wrapping_type(self, dtype: DType) -> &'static str {
        match dtype.bits() {
            64 => self.value_type(DType::UInt64),
            _ => "unsigned int",
        }
    }

    /// The suffix of a 64-bit integer literal.
    pub(super) fn long_suffix(self) -> &'static str {
        match self {
            Dialect::Cuda => "LL",
            Dialect::OpenCl => "L",
        }
    }

    /// The address space qualifier of a pointer to device memory.
    pub(super) fn global(self) -> &'static str {
        match self {
            Dialect::Cuda => "",
            Dialect::OpenCl => "__global ",
        }
    }

    /// The address space qualifier of a pointer to shared memory.
    pub(super) fn shared(self) -> &'static str {
        match self {
            Dialect::Cuda => "",
            Dialect::OpenCl => "__local ",
        }
    }

    /// The qualifier that promises that no other pointer leads to the same memory.
    pub(super) fn restrict(self) -> &'static str {
        match self {
            Dialect::Cuda => " __restrict__",
            Dialect::OpenCl => " restrict",
        }
    }

    /// The index of the running block along an axis.
    pub(super) fn block_index(self, axis: Axis) -> CExpr {
        let index = match self {
            Dialect::Cuda => CExpr::atom(format!("blockIdx.{}", axis.name())),
            Dialect::OpenCl => CExpr::atom(format!("get_group_id({})", axis as usize)),
        };
        index.cast("int")
    }

    /// The index of the running thread in its block along an axis.
    pub(super) fn thread_index(self, axis: Axis) -> CExpr {
        let index = match self {
            Dialect::Cuda => CExpr::atom(format!("threadIdx.{}", axis.name())),
            Dialect::OpenCl => CExpr::atom(format!("get_local_id({})", axis as usize)),
        };
        index.cast("int")
    }

    /// The condition that the thread is the first of its block along an axis.
    pub(super) fn is_first_thread(self, axis: Axis) -> CExpr {
        CExpr::binary(BinaryOp::Equal, &self.thread_index(axis), &CExpr::atom("0"))
    }

    /// The statement with which the threads of a block wait. OpenCL has no asynchronous stores, so
    /// it needs no statement for `Commit` and `Wait`.
    pub(super) fn sync(self, sync: Sync) -> Option<String> {
        match (self, sync) {
            (Dialect::Cuda, Sync::Barrier) => Some("__syncthreads();".to_owned()),
            (Dialect::Cuda, Sync::Commit) => Some("asm volatile(\"cp.async.commit_group;\");".to_owned()),
            (Dialect::Cuda, Sync::Wait(groups)) => {
                Some(format!("asm volatile(\"cp.async.wait_group {groups};\" ::: \"memory\");"))
            }
            (Dialect::OpenCl, Sync::Barrier) => {
                Some("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);".to_owned())
            }
            (Dialect::OpenCl, Sync::Commit | Sync::Wait(_)) => None,
        }
    }

    /// The function that reduces a 32-bit integer into an element at once; none for products.
    pub(super) fn atomic_update(self, op: ReduceOp) -> Option<&'static str> {
        match (self, op) {
            (Dialect::Cuda, ReduceOp::Add) => Some("atomicAdd"),
            (Dialect::Cuda, ReduceOp::Min) => Some("atomicMin"),
            (Dialect::Cuda, ReduceOp::Max) => Some("atomicMax"),
            (Dialect::OpenCl, ReduceOp::Add) => Some("atomic_add"),
            (Dialect::OpenCl, ReduceOp::Min) => Some("atomic_min"),
            (Dialect::OpenCl, ReduceOp::Max) => Some("atomic_max"),
            (_, ReduceOp::Mul) => None,
        }
    }

    /// The hint that makes the compiler unroll a loop.
    pub(super) fn unroll(self) -> &'static str {
        match self {
            Dialect::Cuda => "#pragma unroll",
            Dialect::OpenCl => "__attribute__((opencl_unroll_hint))",
        }
    }

    /// The hint that keeps the compiler from unrolling a loop.
    pub(super) fn no_unroll(self) -> &'static str {
        match self {
            Dialect::Cuda => "#pragma unroll 1",
            Dialect::OpenCl => "__attribute__((opencl_unroll_hint(1)))",
        }
    }

    /// The declaration of a kernel up to its name.
    pub(super) fn kernel_head(self, block: [u32; 3]) -> String {
        let [x, y, z] = block;
        match self {
            Dialect::Cuda => format!("extern \"C\" __global__ void __launch_bounds__({})", x * y * z),
            Dialect::OpenCl => format!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z}))) void"),
        }
    }
}
