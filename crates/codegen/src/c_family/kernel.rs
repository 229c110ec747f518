//! Splits a nest into kernels and host commands, and determines each kernel's parameters.
//!
//! From the outside in, the host allocates scratch memory and runs loops. The first loop over
//! blocks or threads becomes a kernel. A statement that is in no such loop, and contains none,
//! becomes a kernel that one thread runs.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::index::Atom;
use tilewright_ir::nest::{For, LoopKind, Scope, Stmt};
use tilewright_ir::walk::{self, any_loop};
use tilewright_ir::{Access, DType, Expr, IndexExpr, LoopNest, TensorId, VarId};
use tilewright_target::Gpu;

use super::combine::Way;
use super::dialect::Dialect;
use super::host::{Argument, Command, GpuCode, Launch};
use super::names::{Identifiers, identifier};
use super::prelude::{self, Helper};
use super::promise::is_restrict;
use super::range::Ranges;
use super::stmt::{Emit, Emitter};
use crate::{Check, CodegenError};

/// The alignment in bytes of buffers in shared memory.
const SHARED_ALIGNMENT: i64 = 16;
/// Subscripts are computed in 32 bits where no buffer has more elements than this. The limit leaves
/// headroom for intermediate sums.
const NARROW: i64 = 1 << 30;

/// The properties of a nest that stay constant while its kernels are written.
pub(super) struct Unit<'a> {
    pub(super) nest: &'a LoopNest,
    pub(super) dialect: Dialect,
    pub(super) names: Identifiers,
    /// Whether subscripts need 64 bits.
    pub(super) wide: bool,
    /// Whether threads can copy to shared memory asynchronously.
    pub(super) has_later_copies: bool,
    /// The variables of loops that the host runs.
    pub(super) host_vars: BTreeSet<VarId>,
    /// The scratch buffers in device memory.
    host_rooms: BTreeSet<TensorId>,
    /// The dimensions of each register buffer that are distributed over threads.
    spread: BTreeMap<TensorId, BTreeSet<usize>>,
    written: BTreeSet<TensorId>,
}

impl<'a> Unit<'a> {
    pub(super) fn new(nest: &'a LoopNest, gpu: &Gpu) -> Unit<'a> {
        let wide = nest.buffers.iter().any(|buffer| buffer.elements() > NARROW);
        let mut survey = Survey::default_of(nest);
        survey.stmts(&nest.setup, true);
        survey.stmts(&nest.body, true);
        let Survey { host_vars, host_rooms, spread, written, .. } = survey;
        let dialect = Dialect::from(gpu.api);
        let has_later_copies = gpu.has_asynchronous_copies();
        let names = Identifiers::of(nest);
        Unit { nest, dialect, names, wide, has_later_copies, host_vars, host_rooms, spread, written }
    }

    /// Writes all kernels.
    pub(super) fn write(&self, about: &str) -> Emit<GpuCode> {
        let mut program = Program {
            unit: self,
            kernels: String::new(),
            functions: Vec::new(),
            checks: Vec::new(),
            ranges: Ranges::default(),
            count: 0,
        };
        let setup = program.commands(&self.nest.setup)?;
        if !program.kernels.is_empty() {
            program.kernels.insert_str(0, "\n// What is made of constants, once:\n");
            program.kernels.push_str("\n// What every call runs:\n");
        }
        let body = program.commands(&self.nest.body)?;
        let scratch = self.host_rooms.iter().map(|id| (*id, self.nest.buffer(*id).bytes().max(1) as usize));
        let mut text: String = about.lines().map(|line| format!("// {line}\n")).collect();
        text.push_str(&prelude::head(self.dialect, has_doubles(self.nest)));
        program.functions.sort_by_key(|(helper, dtype)| (helper.base(), *dtype));
        program.functions.dedup();
        for (helper, dtype) in &program.functions {
            text.push_str(&prelude::function(self.dialect, *helper, *dtype));
        }
        text.push_str(&program.kernels);
        Ok(GpuCode {
            dialect: self.dialect,
            text,
            setup,
            body,
            scratch: scratch.collect(),
            checks: program.checks,
        })
    }

    /// Whether a kernel takes a buffer as a parameter.
    pub(super) fn is_parameter(&self, id: TensorId) -> bool {
        matches!(self.nest.buffer(id).scope, Scope::Argument(_) | Scope::Constant)
            || self.host_rooms.contains(&id)
    }

    /// The dimensions of a register buffer that are distributed over threads. Along these
    /// dimensions, each thread holds one element.
    pub(super) fn spread_dimensions(&self, id: TensorId) -> BTreeSet<usize> {
        self.spread.get(&id).cloned().unwrap_or_default()
    }

    /// The number of elements of a buffer that one thread holds: all elements, if no dimension is
    /// distributed.
    pub(super) fn own_elements(&self, id: TensorId) -> i64 {
        let spread = self.spread_dimensions(id);
        let own = self.nest.buffer(id).shape.iter().enumerate().filter(|(at, _)| !spread.contains(at));
        own.map(|(_, extent)| *extent).product::<i64>().max(1)
    }

    /// The stride of each dimension, where dimensions that are distributed over threads take no
    /// space.
    pub(super) fn own_strides(&self, id: TensorId) -> Vec<i64> {
        let spread = self.spread_dimensions(id);
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

    /// The declaration of a parameter. `restrict` says that no other pointer or thread changes the
    /// memory of a buffer.
    fn parameter(&self, argument: Argument, restrict: bool) -> String {
        let dialect = self.dialect;
        match argument {
            Argument::Buffer(id) => {
                let constant = if self.written.contains(&id) { "" } else { "const " };
                let t = dialect.memory_type(self.nest.buffer(id).dtype);
                let (space, restrict) = (dialect.global(), if restrict { dialect.restrict() } else { "" });
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
struct Program<'a> {
    unit: &'a Unit<'a>,
    kernels: String,
    functions: Vec<(Helper, DType)>,
    checks: Vec<Check>,
    /// The intervals of the variables of the enclosing host loops.
    ranges: Ranges,
    count: usize,
}

impl Program<'_> {
    fn commands(&mut self, stmts: &[Stmt]) -> Emit<Vec<Command>> {
        let mut commands = Vec::new();
        for stmt in stmts {
            match stmt {
                // An allocation of registers stays inside its kernel, even where one thread runs
                // the whole kernel: registers belong to a thread.
                Stmt::Allocate(room) if self.unit.is_parameter(room.buffer) || has_spread(&room.body) => {
                    commands.extend(self.commands(&room.body)?);
                }
                Stmt::For(own) if !own.is_spread() && has_spread(&own.body) => {
                    no_data(&own.extent)?;
                    self.ranges.enter(own.var, &own.extent);
                    let body = self.commands(&own.body)?;
                    self.ranges.leave(own.var);
                    commands.push(Command::Repeat { var: own.var, extent: own.extent.clone(), body });
                }
                Stmt::If(own) if has_spread(&own.then) || has_spread(&own.otherwise) => {
                    own.conditions.iter().try_for_each(no_data)?;
                    let (then, otherwise) = (self.commands(&own.then)?, self.commands(&own.otherwise)?);
                    commands.push(Command::Choose { conditions: own.conditions.clone(), then, otherwise });
                }
                Stmt::Prefetch(_) | Stmt::Sync(_) => {}
                stmt => commands.push(Command::Launch(self.kernel(stmt)?)),
            }
        }
        Ok(commands)
    }

    fn kernel(&mut self, stmt: &Stmt) -> Emit<Launch> {
        let unit = self.unit;
        let shape = Shape::of(stmt);
        let mut shared = BTreeMap::new();
        let room = place_shared(std::slice::from_ref(stmt), unit.nest, 0, &mut shared);
        let shared_bytes =
            room + Way::of(unit.dialect, shape.block).values(shape.block) * combined_bytes(stmt);
        let (shape_of, shared) = ((shape.grid, shape.block), (shared, room));
        let mut emitter = Emitter::new(unit, self.ranges.clone(), shape_of, shared, &mut self.checks);
        emitter.stmts(std::slice::from_ref(stmt))?;
        let Emitter { text, arguments, functions, .. } = emitter;
        self.functions.extend(functions);
        self.count += 1;
        let kernel = format!("{}_{}", identifier(&unit.nest.name), self.count);
        let restrict = is_restrict(stmt, &|id| unit.is_parameter(id));
        let parameters: Vec<String> =
            arguments.iter().map(|argument| unit.parameter(*argument, restrict)).collect();
        let head = unit.dialect.kernel_head(shape.block);
        self.kernels.push_str(&format!("\n{head} {kernel}({}) {{\n", parameters.join(", ")));
        if shared_bytes > 0 {
            self.kernels.push_str(&format!("  {}\n", unit.dialect.shared_declaration(shared_bytes)));
        }
        self.kernels.push_str(&text);
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

fn no_data(index: &IndexExpr) -> Emit<()> {
    match index.has_data() {
        true => Err(CodegenError::Unsupported("kernels whose number depends on data".into())),
        false => Ok(()),
    }
}

fn has_spread(stmts: &[Stmt]) -> bool {
    any_loop(stmts, For::is_spread)
}

/// Whether some value of a nest is a double. Values may be doubles even where no buffer holds
/// doubles.
fn has_doubles(nest: &LoopNest) -> bool {
    let is_double = |dtype: DType| dtype == DType::Float64;
    let in_data = |atom: &Atom| matches!(atom, Atom::Data(data) if computes_doubles(&data.value));
    let computed = |stmts: &[Stmt]| {
        walk::any(stmts, &mut |stmt| {
            stmt.store().is_some_and(|store| computes_doubles(&store.value))
                || stmt.any_own_index(&mut |index| index.any(&mut { in_data }))
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
struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
}

impl Shape {
    fn of(stmt: &Stmt) -> Shape {
        let mut shape = Shape { grid: [1; 3], block: [1; 3] };
        walk::visit(std::slice::from_ref(stmt), &mut |stmt| shape.include(stmt));
        shape
    }

    fn include(&mut self, stmt: &Stmt) {
        let Stmt::For(own) = stmt else { return };
        let place = match own.kind {
            LoopKind::Block(axis) => &mut self.grid[axis as usize],
            LoopKind::Thread(axis) => &mut self.block[axis as usize],
            _ => return,
        };
        let extent = own.extent.as_constant().and_then(|extent| u32::try_from(extent).ok());
        *place = (*place).max(extent.unwrap_or(1));
    }
}

/// Assigns each shared buffer an offset, and returns the end of the used memory. Buffers in the two
/// branches of an `if` share memory. All other buffers have separate memory, because there need not
/// be a barrier between the last use of one buffer and the first use of the next.
fn place_shared(stmts: &[Stmt], nest: &LoopNest, start: i64, places: &mut BTreeMap<TensorId, i64>) -> i64 {
    let mut end = start;
    for stmt in stmts {
        end = match stmt {
            Stmt::Allocate(own) => {
                let buffer = nest.buffer(own.buffer);
                let mut inside = end;
                if buffer.scope == Scope::Shared {
                    places.insert(own.buffer, end);
                    inside += (buffer.bytes() + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
                }
                place_shared(&own.body, nest, inside, places)
            }
            other => {
                let ends = other.bodies().map(|body| place_shared(body, nest, end, places));
                ends.max().unwrap_or(end)
            }
        };
    }
    end
}

/// The size in bytes of the largest value that a reduction across threads combines.
fn combined_bytes(stmt: &Stmt) -> i64 {
    let mut most = 0;
    walk::visit(std::slice::from_ref(stmt), &mut |stmt| {
        if let Stmt::Combine(own) = stmt {
            most = most.max(own.store.value.dtype.bytes() as i64);
        }
    });
    most
}

/// Collects the properties of a nest that are needed before any kernel is written.
struct Survey<'a> {
    nest: &'a LoopNest,
    host_vars: BTreeSet<VarId>,
    host_rooms: BTreeSet<TensorId>,
    threads: BTreeSet<VarId>,
    spread: BTreeMap<TensorId, BTreeSet<usize>>,
    written: BTreeSet<TensorId>,
}

impl<'a> Survey<'a> {
    fn default_of(nest: &'a LoopNest) -> Survey<'a> {
        Survey {
            nest,
            host_vars: BTreeSet::new(),
            host_rooms: BTreeSet::new(),
            threads: BTreeSet::new(),
            spread: BTreeMap::new(),
            written: BTreeSet::new(),
        }
    }

    fn stmts(&mut self, stmts: &[Stmt], on_host: bool) {
        for stmt in stmts {
            let inside_on_host = match stmt {
                Stmt::For(own) => self.for_loop(own, on_host),
                Stmt::Allocate(own) => {
                    if on_host && self.nest.buffer(own.buffer).scope == Scope::Scratch {
                        self.host_rooms.insert(own.buffer);
                    }
                    on_host
                }
                other => on_host && other.bodies().any(has_spread),
            };
            if let Some(store) = stmt.store() {
                self.written.insert(store.target.tensor);
                self.register_access(&store.target);
                store.value.visit_loads(&mut |access| self.register_access(access));
            }
            stmt.bodies().for_each(|body| self.stmts(body, inside_on_host));
        }
    }

    /// Records a loop. Returns true when the host runs the loop.
    fn for_loop(&mut self, own: &For, on_host: bool) -> bool {
        let host = on_host && !own.is_spread() && has_spread(&own.body);
        if host {
            self.host_vars.insert(own.var);
        }
        if own.thread_axis().is_some() {
            self.threads.insert(own.var);
        }
        host
    }

    /// Records which dimensions of a register buffer are distributed over threads.
    fn register_access(&mut self, access: &Access) {
        if self.nest.buffer(access.tensor).scope != Scope::Register {
            return;
        }
        for (dimension, index) in access.indices.iter().enumerate() {
            let thread = index.any(&mut |atom| matches!(atom, Atom::Var(var) if self.threads.contains(var)));
            if thread {
                self.spread.entry(access.tensor).or_default().insert(dimension);
            }
        }
    }
}
