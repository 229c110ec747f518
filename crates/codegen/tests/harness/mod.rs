//! Builds loop nests by hand and runs their kernels.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod accuracy;
pub mod fenced;

use std::ffi::c_void;
use std::sync::Arc;

use tilewright_codegen::{Call, Kernel, Parallel, ParallelBody, compile};
use tilewright_ir::nest::{
    Access, Allocate, Atom, Buffer, BufferId, Data, Expr, ExprKind, For, If, IndexExpr, LoopKind, LoopVar,
    LoopVarId, Scope, Stmt, Store,
};
use tilewright_ir::{
    BinaryOp, Builtin, DType, LoopNest, Number, Origin, ReduceOp, Scalar, ScalarId, TensorId, verify_nest,
};
use tilewright_target::{Cpu, VectorInstructions};

/// A loop nest under construction.
pub struct Builder {
    pub nest: LoopNest,
}

impl Builder {
    pub fn new() -> Builder {
        Builder {
            nest: LoopNest {
                name: "kernel".into(),
                contract: true,
                scalars: vec![],
                buffers: vec![],
                vars: vec![],
                setup: vec![],
                body: vec![],
            },
        }
    }

    fn buffer(&mut self, dtype: DType, shape: &[i64], scope: Scope) -> BufferId {
        let at = self.nest.buffers.len();
        self.nest.buffers.push(Buffer { name: format!("b{at}"), dtype, shape: shape.to_vec(), scope });
        BufferId(at as u32)
    }

    pub fn argument(&mut self, dtype: DType, shape: &[i64]) -> BufferId {
        let tensor = TensorId(self.nest.buffers.len() as u32);
        self.buffer(dtype, shape, Scope::Argument(tensor))
    }

    pub fn constant(&mut self, dtype: DType, shape: &[i64]) -> BufferId {
        self.buffer(dtype, shape, Scope::Constant)
    }

    pub fn scratch(&mut self, dtype: DType, shape: &[i64]) -> BufferId {
        self.buffer(dtype, shape, Scope::Scratch)
    }

    pub fn register(&mut self, dtype: DType, shape: &[i64]) -> BufferId {
        self.buffer(dtype, shape, Scope::Register)
    }

    pub fn scalar(&mut self, dtype: DType) -> Expr {
        let at = self.nest.scalars.len();
        self.nest.scalars.push(Scalar { name: format!("s{at}"), dtype });
        Expr { dtype, kind: ExprKind::Scalar(ScalarId(at as u32)) }
    }

    pub fn var(&mut self, name: &str) -> LoopVarId {
        self.nest.vars.push(LoopVar { name: name.into() });
        LoopVarId(self.nest.vars.len() as u32 - 1)
    }

    pub fn load(&self, tensor: BufferId, indices: &[IndexExpr]) -> Expr {
        let dtype = self.nest.buffer(tensor).dtype;
        Expr { dtype, kind: ExprKind::Load(access(tensor, indices)) }
    }

    /// A load, converted to the compute type of its element type.
    pub fn value(&self, tensor: BufferId, indices: &[IndexExpr]) -> Expr {
        let load = self.load(tensor, indices);
        let compute = load.dtype.compute_type();
        load.cast(compute)
    }

    pub fn compile(mut self, vectors: VectorInstructions, body: Vec<Stmt>) -> Compiled {
        self.nest.body = body;
        let cpu = Cpu { cores: 2, vectors, caches: vec![32 << 10] };
        let kernel = compile(verify_nest(&self.nest).unwrap(), &cpu).unwrap();
        Compiled { kernel, nest: self.nest }
    }
}

pub struct Compiled {
    pub kernel: Kernel,
    pub nest: LoopNest,
}

impl Compiled {
    /// Calls the kernel with its arguments in order, and returns the status.
    pub fn run(&self, arguments: &mut [&mut [u8]]) -> i64 {
        self.run_with(arguments, &[], serially)
    }

    pub fn run_with(&self, arguments: &mut [&mut [u8]], scalars: &[u64], parallel: Parallel) -> i64 {
        let wanted = self.nest.buffers.iter().filter(|buffer| matches!(buffer.scope, Scope::Argument(_)));
        for (given, wanted) in arguments.iter().zip(wanted) {
            assert_eq!(given.len() as i64, wanted.bytes(), "size of {}", wanted.name);
        }
        let pointers: Vec<*mut u8> = arguments.iter_mut().map(|bytes| bytes.as_mut_ptr()).collect();
        let mut rooms: Vec<Vec<u8>> = self.kernel.constants().iter().map(|bytes| vec![0; *bytes]).collect();
        let constants: Vec<*mut u8> = rooms.iter_mut().map(|room| room.as_mut_ptr()).collect();
        let mut scratch = Aligned::new(self.kernel.scratch_bytes());
        let mut status = 0;
        let call = Call {
            arguments: pointers.as_ptr(),
            constants: constants.as_ptr(),
            scalars: scalars.as_ptr(),
            scratch: scratch.pointer(),
            status: &mut status,
            parallel,
            pool: std::ptr::null(),
        };
        unsafe {
            self.kernel.setup(&call);
            self.kernel.call(&call);
        }
        status
    }
}

/// Bytes aligned to 64.
pub struct Aligned(Vec<u8>);

impl Aligned {
    pub fn new(bytes: usize) -> Aligned {
        Aligned(vec![0xa5; bytes + 64])
    }

    pub fn pointer(&mut self) -> *mut u8 {
        let start = self.0.as_mut_ptr();
        start.wrapping_add(start.align_offset(64))
    }
}

/// Runs all iterations of a parallel loop on this thread, in two parts.
pub extern "C" fn serially(
    _: *const c_void,
    body: ParallelBody,
    env: *const c_void,
    extent: i64,
    bytes: i64,
) {
    let mut scratch = Aligned::new(bytes as usize);
    body(env, 0, extent / 2, scratch.pointer());
    body(env, extent / 2, extent, scratch.pointer());
}

/// Runs each iteration of a parallel loop on its own thread.
pub extern "C" fn on_threads(
    _: *const c_void,
    body: ParallelBody,
    env: *const c_void,
    extent: i64,
    bytes: i64,
) {
    let env = env as usize;
    std::thread::scope(|scope| {
        for at in 0..extent {
            scope.spawn(move || {
                let mut scratch = Aligned::new(bytes as usize);
                body(env as *const c_void, at, at + 1, scratch.pointer());
            });
        }
    });
}

/// The vector instruction sets that this machine can run.
pub fn runnable() -> Vec<VectorInstructions> {
    let host = Cpu::host().vectors;
    VectorInstructions::ALL.into_iter().filter(|vectors| *vectors <= host).collect()
}

pub fn access(tensor: BufferId, indices: &[IndexExpr]) -> Access {
    Access { tensor, indices: indices.to_vec(), origin: Origin { start: 3, end: 5 } }
}

pub fn c(value: i64) -> IndexExpr {
    IndexExpr::constant(value)
}

pub fn v(var: LoopVarId) -> IndexExpr {
    IndexExpr::var(var)
}

/// A subscript read from data.
pub fn data(value: Expr) -> IndexExpr {
    IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared: None })))
}

pub fn each(var: LoopVarId, extent: impl Into<Extent>, kind: LoopKind, body: Vec<Stmt>) -> Stmt {
    Stmt::For(For { var, extent: extent.into().0, kind, body })
}

pub struct Extent(IndexExpr);

impl From<i64> for Extent {
    fn from(extent: i64) -> Extent {
        Extent(c(extent))
    }
}

impl From<IndexExpr> for Extent {
    fn from(extent: IndexExpr) -> Extent {
        Extent(extent)
    }
}

pub fn when(conditions: &[IndexExpr], then: Vec<Stmt>, otherwise: Vec<Stmt>) -> Stmt {
    Stmt::If(If { conditions: conditions.to_vec(), then, otherwise })
}

pub fn allocate(buffer: BufferId, body: Vec<Stmt>) -> Stmt {
    Stmt::Allocate(Allocate { buffer, body })
}

pub fn set(tensor: BufferId, indices: &[IndexExpr], value: Expr) -> Stmt {
    Stmt::Store(Store {
        target: access(tensor, indices),
        value,
        reduce: None,
        is_asynchronous: false,
        is_atomic: false,
        claim: None,
    })
}

pub fn reduce(op: ReduceOp, tensor: BufferId, indices: &[IndexExpr], value: Expr) -> Stmt {
    Stmt::Store(Store {
        target: access(tensor, indices),
        value,
        reduce: Some(op),
        is_asynchronous: false,
        is_atomic: false,
        claim: None,
    })
}

pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::binary(op, left, right)
}

pub fn choose(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    let dtype = then.dtype;
    Expr { dtype, kind: ExprKind::Select(Box::new([condition, then, otherwise])) }
}

pub fn call(builtin: Builtin, arguments: Vec<Expr>) -> Expr {
    let dtype = if builtin.is_predicate() { DType::Bool } else { arguments[0].dtype };
    Expr { dtype, kind: ExprKind::Call(builtin, arguments) }
}

pub fn float(value: f64) -> Expr {
    Expr::literal(DType::Float32, Number::Float(value))
}

pub fn int(value: i64) -> Expr {
    Expr::literal(DType::Int64, Number::Int(value as i128))
}

/// An index as a 64-bit value.
pub fn index(index: IndexExpr) -> Expr {
    Expr { dtype: DType::Int64, kind: ExprKind::Index(Box::new(index)) }
}

pub trait Bytes {
    fn bytes(&mut self) -> &mut [u8];
}

impl<T: Copy> Bytes for Vec<T> {
    fn bytes(&mut self) -> &mut [u8] {
        let length = std::mem::size_of_val(self.as_slice());
        // SAFETY: the elements are plain numbers.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr().cast(), length) }
    }
}

/// Small numbers whose sums and products are exact in any order.
pub fn small(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|at| (((at * 7 + seed * 13 + at / 5) % 11) as f32) - 5.0).collect()
}
