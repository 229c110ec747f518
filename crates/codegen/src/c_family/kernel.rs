//! Splits a nest into kernels and host commands, and determines each kernel's parameters.
//!
//! From the outside in, the host allocates scratch memory and runs loops. The first loop over
//! blocks or threads becomes a kernel. A statement that is in no such loop, and contains none,
//! becomes a kernel that one thread runs.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::nest::{Access, Atom, BufferId, Expr, For, IndexExpr, LoopKind, LoopVarId, Scope, Stmt};
use tilewright_ir::walk::{self, any_loop};
use tilewright_ir::{DType, LoopNest};
use tilewright_target::Gpu;

use super::combine::ReductionMethod;
use super::dialect::Dialect;
use super::host::{Argument, Command, GpuCode, Launch, ScratchBlock};
use super::names::{Identifiers, identifier};
use super::prelude::{self, Helper};
use super::range::Ranges;
use super::restrict::Pointers;
use super::stmt::{Emit, Emitter};
use crate::{Check, CodegenError, memory_plan};

/// The alignment in bytes of buffers in shared memory.
const SHARED_ALIGNMENT: i64 = 16;
/// Subscripts are computed in 32 bits where no buffer has more elements than this. The limit leaves
/// headroom for intermediate sums.
const MAX_NARROW_ELEMENTS: i64 = 1 << 30;
/// The first CUDA architecture that adds and compares two halfwords in one instruction.
const HOPPER: u32 = 90;

/// The properties of a nest that stay constant while its kernels are written.
pub(super) struct Unit<'a> {
    pub(super) nest: &'a LoopNest,
    pub(super) dialect: Dialect,
    pub(super) names: Identifiers,
    /// Whether subscripts need 64 bits.
    pub(super) needs_wide_offsets: bool,
    /// Whether threads can copy to shared memory asynchronously.
    pub(super) has_async_copies: bool,
    /// Whether one instruction computes two halfwords of a word, or may do so.
    pub(super) has_packed_halves: bool,
    /// The variables of loops that the host runs.
    pub(super) host_vars: BTreeSet<LoopVarId>,
    /// The scratch buffers in device memory.
    device_scratch: BTreeSet<BufferId>,
    /// The dimensions of each register buffer that are distributed over threads.
    distributed: BTreeMap<BufferId, BTreeSet<usize>>,
}

impl<'a> Unit<'a> {
    pub(super) fn new(nest: &'a LoopNest, gpu: &Gpu) -> Unit<'a> {
        let needs_wide_offsets = nest.buffers.iter().any(|buffer| buffer.elements() > MAX_NARROW_ELEMENTS);
        let mut survey = Survey::new(nest);
        survey.record_stmts(&nest.setup, true);
        survey.record_stmts(&nest.body, true);
        let Survey { host_vars, device_scratch, distributed, .. } = survey;
        let dialect = Dialect::from(gpu.api);
        let has_async_copies = gpu.has_asynchronous_copies();
        let has_packed_halves = dialect == Dialect::OpenCl || gpu.architecture >= HOPPER;
        let names = Identifiers::new(nest);
        Unit {
            nest,
            dialect,
            names,
            needs_wide_offsets,
            has_async_copies,
            has_packed_halves,
            host_vars,
            device_scratch,
            distributed,
        }
    }

    /// Writes all kernels.
    pub(super) fn write(&self, header: &str) -> Emit<GpuCode> {
        let mut writer = KernelWriter {
            unit: self,
            kernels: String::new(),
            helpers: Vec::new(),
            checks: Vec::new(),
            ranges: Ranges::default(),
            kernel_count: 0,
        };
        let setup = writer.commands(&self.nest.setup)?;
        if !writer.kernels.is_empty() {
            writer.kernels.insert_str(0, "\n// Setup kernels, which run once:\n");
            writer.kernels.push_str("\n// Kernels of each call:\n");
        }
        let body = writer.commands(&self.nest.body)?;
        let mut text: String = header.lines().map(|line| format!("// {line}\n")).collect();
        text.push_str(&prelude::head(self.dialect, has_doubles(self.nest)));
        writer.helpers.sort_by_key(|(helper, dtype)| (helper.calls_others(), helper.base_name(), *dtype));
        writer.helpers.dedup();
        for (helper, dtype) in &writer.helpers {
            text.push_str(&prelude::function(self.dialect, *helper, *dtype));
        }
        text.push_str(&writer.kernels);
        Ok(GpuCode {
            dialect: self.dialect,
            text,
            setup,
            body,
            scratch: self.scratch_blocks(),
            checks: writer.checks,
        })
    }

    /// The memory of the scratch buffers. Kernels run in the order of the statements, so buffers
    /// share memory as these allow it.
    fn scratch_blocks(&self) -> Vec<ScratchBlock> {
        let blocks = [&self.nest.setup, &self.nest.body].into_iter().flat_map(|stmts| {
            let mut buffers = Vec::new();
            walk::visit(stmts, &mut |stmt| match stmt {
                Stmt::Allocate(own) if self.device_scratch.contains(&own.buffer) => {
                    buffers.push((own.buffer, self.nest.buffer(own.buffer).bytes().max(1)));
                }
                _ => {}
            });
            memory_plan::plan(&buffers, memory_plan::allocated_body(stmts))
        });
        blocks.map(|block| ScratchBlock { bytes: block.bytes as usize, buffers: block.buffers }).collect()
    }

    /// Whether a kernel takes a buffer as a parameter.
    pub(super) fn is_parameter(&self, id: BufferId) -> bool {
        matches!(self.nest.buffer(id).scope, Scope::Argument(_) | Scope::Constant)
            || self.device_scratch.contains(&id)
    }

    /// The dimensions of a register buffer that are distributed over threads. Along these
    /// dimensions, each thread holds one element.
    pub(super) fn distributed_dimensions(&self, id: BufferId) -> BTreeSet<usize> {
        self.distributed.get(&id).cloned().unwrap_or_default()
    }

    /// The number of elements of a buffer that one thread holds: all elements, if no dimension is
    /// distributed.
    pub(super) fn thread_elements(&self, id: BufferId) -> i64 {
        let spread = self.distributed_dimensions(id);
        let own = self.nest.buffer(id).shape.iter().enumerate().filter(|(at, _)| !spread.contains(at));
        own.map(|(_, extent)| *extent).product::<i64>().max(1)
    }

    /// The stride of each dimension, where dimensions that are distributed over threads take no
    /// space.
    pub(super) fn thread_strides(&self, id: BufferId) -> Vec<i64> {
        let spread = self.distributed_dimensions(id);
        let shape = &self.nest.buffer(id).shape;
        let mut strides = vec![1; shape.len()];
        let mut stride = 1;
        for at in (0..shape.len()).rev() {
            strides[at] = stride;
            if !spread.contains(&at) {
                stride *= shape[at];
            }
        }
        strides
    }

    /// The declaration of a parameter.
    fn parameter(&self, argument: Argument, pointers: &Pointers) -> String {
        let dialect = self.dialect;
        match argument {
            Argument::Buffer(id) => {
                let constant = if pointers.is_const(id) { "const " } else { "" };
                let t = dialect.memory_type(self.nest.buffer(id).dtype);
                let (space, restrict) =
                    (dialect.global(), if pointers.is_restrict(id) { dialect.restrict() } else { "" });
                format!("{space}{constant}{t}*{restrict} {}", self.names.buffer(id))
            }
            Argument::Scalar(id) => {
                let t = dialect.memory_type(self.nest.scalars[id.index()].dtype);
                format!("const {t} {}", self.names.scalar(id))
            }
            Argument::Variable(var) => {
                format!("const {} {}", dialect.value_type(DType::Int64), self.names.var(var))
            }
            Argument::Status => format!("{}{}* status", dialect.global(), dialect.value_type(DType::Int64)),
        }
    }
}

/// The kernels written so far.
struct KernelWriter<'a> {
    unit: &'a Unit<'a>,
    kernels: String,
    helpers: Vec<(Helper, DType)>,
    checks: Vec<Check>,
    /// The intervals of the variables of the enclosing host loops.
    ranges: Ranges,
    kernel_count: usize,
}

impl KernelWriter<'_> {
    fn commands(&mut self, stmts: &[Stmt]) -> Emit<Vec<Command>> {
        let mut commands = Vec::new();
        for stmt in stmts {
            match stmt {
                // An allocation of registers stays inside its kernel, even where one thread runs
                // the whole kernel: registers belong to a thread.
                Stmt::Allocate(allocation)
                    if self.unit.is_parameter(allocation.buffer)
                        || has_block_or_thread_loop(&allocation.body) =>
                {
                    commands.extend(self.commands(&allocation.body)?);
                }
                Stmt::For(inner)
                    if !inner.is_block_or_thread_loop() && has_block_or_thread_loop(&inner.body) =>
                {
                    reject_data_dependence(&inner.extent)?;
                    self.ranges.enter(inner.var, &inner.extent);
                    let body = self.commands(&inner.body)?;
                    self.ranges.leave(inner.var);
                    commands.push(Command::Repeat { var: inner.var, extent: inner.extent.clone(), body });
                }
                Stmt::If(conditional)
                    if has_block_or_thread_loop(&conditional.then)
                        || has_block_or_thread_loop(&conditional.otherwise) =>
                {
                    conditional.conditions.iter().try_for_each(reject_data_dependence)?;
                    let (then, otherwise) =
                        (self.commands(&conditional.then)?, self.commands(&conditional.otherwise)?);
                    commands.push(Command::Choose {
                        conditions: conditional.conditions.clone(),
                        then,
                        otherwise,
                    });
                }
                Stmt::Prefetch(_) | Stmt::Sync(_) => {}
                stmt => commands.push(Command::Launch(self.kernel(stmt)?)),
            }
        }
        Ok(commands)
    }

    fn kernel(&mut self, stmt: &Stmt) -> Emit<Launch> {
        let unit = self.unit;
        let shape = LaunchShape::for_stmt(stmt);
        let mut shared = BTreeMap::new();
        let shared_end = assign_shared_offsets(std::slice::from_ref(stmt), unit.nest, 0, &mut shared);
        let shared_bytes = shared_end
            + ReductionMethod::for_block(unit.dialect, shape.block).shared_values(shape.block)
                * largest_reduction_bytes(stmt);
        let (shape_of, shared) = ((shape.grid, shape.block), (shared, shared_end));
        let mut emitter = Emitter::new(unit, self.ranges.clone(), shape_of, shared, &mut self.checks);
        emitter.stmts(std::slice::from_ref(stmt))?;
        let Emitter { text, arguments, helpers: functions, .. } = emitter;
        self.helpers.extend(functions);
        self.kernel_count += 1;
        let kernel = format!("{}_{}", identifier(&unit.nest.name), self.kernel_count);
        let pointers = Pointers::of(stmt, &|id| unit.is_parameter(id));
        let parameters: Vec<String> =
            arguments.iter().map(|argument| unit.parameter(*argument, &pointers)).collect();
        let head = unit.dialect.kernel_head(shape.block);
        self.kernels.push_str(&format!("\n{head} {kernel}({}) {{\n", parameters.join(", ")));
        if shared_bytes > 0 {
            self.kernels.push_str(&format!("  {}\n", unit.dialect.shared_declaration(shared_bytes)));
        }
        // A thread stores the number of a failed check once, at the end.
        let is_checked = arguments.contains(&Argument::Status);
        if is_checked {
            self.kernels.push_str("  int tw_failed = 0;\n");
        }
        self.kernels.push_str(&text);
        if is_checked {
            self.kernels.push_str("  if (tw_failed != 0) *status = tw_failed;\n");
        }
        self.kernels.push_str("}\n");
        Ok(Launch {
            kernel,
            grid: shape.grid,
            block: shape.block,
            shared_bytes: shared_bytes as u32,
            arguments,
        })
    }
}

fn reject_data_dependence(index: &IndexExpr) -> Emit<()> {
    match index.has_data() {
        true => {
            let what = "a host loop or condition around kernels that depends on data";
            Err(CodegenError::Unsupported(what.into()))
        }
        false => Ok(()),
    }
}

fn has_block_or_thread_loop(stmts: &[Stmt]) -> bool {
    any_loop(stmts, For::is_block_or_thread_loop)
}

/// Whether some value of a nest is a double. Values may be doubles even where no buffer holds
/// doubles.
fn has_doubles(nest: &LoopNest) -> bool {
    let is_double = |dtype: DType| dtype == DType::Float64;
    let in_data = |atom: &Atom| matches!(atom, Atom::Data(data) if computes_doubles(&data.value));
    let computed = |stmts: &[Stmt]| {
        walk::any(stmts, &mut |stmt| {
            stmt.store().is_some_and(|store| computes_doubles(&store.value))
                || stmt.any_own_index(&mut |index| index.any_atom(&mut { in_data }))
        })
    };
    nest.buffers.iter().any(|buffer| is_double(buffer.dtype))
        || nest.scalars.iter().any(|scalar| is_double(scalar.dtype))
        || computed(&nest.setup)
        || computed(&nest.body)
}

fn computes_doubles(expr: &Expr) -> bool {
    expr.dtype == DType::Float64 || expr.operands().iter().any(computes_doubles)
}

/// The grid and block sizes of a kernel.
struct LaunchShape {
    grid: [u32; 3],
    block: [u32; 3],
}

impl LaunchShape {
    fn for_stmt(stmt: &Stmt) -> LaunchShape {
        let mut shape = LaunchShape { grid: [1; 3], block: [1; 3] };
        walk::visit(std::slice::from_ref(stmt), &mut |stmt| shape.include(stmt));
        shape
    }

    fn include(&mut self, stmt: &Stmt) {
        let Stmt::For(inner) = stmt else { return };
        let size = match inner.kind {
            LoopKind::Block(axis) => &mut self.grid[axis as usize],
            LoopKind::Thread(axis) => &mut self.block[axis as usize],
            _ => return,
        };
        let extent = inner.extent.as_constant().and_then(|extent| u32::try_from(extent).ok());
        *size = (*size).max(extent.unwrap_or(1));
    }
}

/// Assigns each shared buffer an offset, and returns the end of the used memory. Buffers in the two
/// branches of an `if` share memory. All other buffers have separate memory, because there need not
/// be a barrier between the last use of one buffer and the first use of the next.
fn assign_shared_offsets(
    stmts: &[Stmt],
    nest: &LoopNest,
    start: i64,
    offsets: &mut BTreeMap<BufferId, i64>,
) -> i64 {
    let mut end = start;
    for stmt in stmts {
        end = match stmt {
            Stmt::Allocate(allocation) => {
                let buffer = nest.buffer(allocation.buffer);
                let mut inside = end;
                if buffer.scope == Scope::Shared {
                    offsets.insert(allocation.buffer, end);
                    inside += (buffer.bytes() + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
                }
                assign_shared_offsets(&allocation.body, nest, inside, offsets)
            }
            other => {
                let ends = other.bodies().map(|body| assign_shared_offsets(body, nest, end, offsets));
                ends.max().unwrap_or(end)
            }
        };
    }
    end
}

/// The size in bytes of the largest value that a reduction across threads combines.
fn largest_reduction_bytes(stmt: &Stmt) -> i64 {
    let mut largest = 0;
    walk::visit(std::slice::from_ref(stmt), &mut |stmt| {
        if let Stmt::Combine(combine) = stmt {
            largest = largest.max(combine.store.value.dtype.bytes() as i64);
        }
    });
    largest
}

/// Collects the properties of a nest that are needed before any kernel is written.
struct Survey<'a> {
    nest: &'a LoopNest,
    host_vars: BTreeSet<LoopVarId>,
    device_scratch: BTreeSet<BufferId>,
    thread_vars: BTreeSet<LoopVarId>,
    distributed: BTreeMap<BufferId, BTreeSet<usize>>,
}

impl<'a> Survey<'a> {
    fn new(nest: &'a LoopNest) -> Survey<'a> {
        Survey {
            nest,
            host_vars: BTreeSet::new(),
            device_scratch: BTreeSet::new(),
            thread_vars: BTreeSet::new(),
            distributed: BTreeMap::new(),
        }
    }

    fn record_stmts(&mut self, stmts: &[Stmt], on_host: bool) {
        for stmt in stmts {
            let inside_on_host = match stmt {
                Stmt::For(inner) => self.record_loop(inner, on_host),
                Stmt::Allocate(allocation) => {
                    if on_host && self.nest.buffer(allocation.buffer).scope == Scope::Scratch {
                        self.device_scratch.insert(allocation.buffer);
                    }
                    on_host
                }
                other => on_host && other.bodies().any(has_block_or_thread_loop),
            };
            if let Some(store) = stmt.store() {
                self.record_register_access(&store.target);
                store.value.visit_loads(&mut |access| self.record_register_access(access));
            }
            stmt.bodies().for_each(|body| self.record_stmts(body, inside_on_host));
        }
    }

    /// Records a loop. Returns true when the host runs the loop.
    fn record_loop(&mut self, inner: &For, on_host: bool) -> bool {
        let host = on_host && !inner.is_block_or_thread_loop() && has_block_or_thread_loop(&inner.body);
        if host {
            self.host_vars.insert(inner.var);
        }
        if inner.thread_axis().is_some() {
            self.thread_vars.insert(inner.var);
        }
        host
    }

    /// Records which dimensions of a register buffer are distributed over threads.
    fn record_register_access(&mut self, access: &Access) {
        if self.nest.buffer(access.tensor).scope != Scope::Register {
            return;
        }
        for (dimension, index) in access.indices.iter().enumerate() {
            let thread =
                index.any_atom(&mut |atom| matches!(atom, Atom::Var(var) if self.thread_vars.contains(var)));
            if thread {
                self.distributed.entry(access.tensor).or_default().insert(dimension);
            }
        }
    }
}
