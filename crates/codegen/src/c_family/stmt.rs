//! Statements of a kernel: loops, choices, stores.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::index::Atom;
use tilewright_ir::nest::{Allocate, Axis, Buffer, For, If, LoopKind, Scope, Stmt, Store};
use tilewright_ir::{Access, DType, Expr, ExprKind, IndexExpr, ScalarId, TensorId, VarId};
use tilewright_target::GpuApi;

use super::dialect::{self, memory_type, value_type};
use super::host::Argument;
use super::index::{Interval, is_multiple};
use super::kernel::Unit;
use super::prelude;
use crate::{Check, CodegenError};

pub(super) type Emit<T> = Result<T, CodegenError>;

/// Bytes of one access at most.
const WIDEST_ACCESS: i64 = 16;

/// Writes the statements of one kernel.
pub(super) struct Emitter<'a> {
    pub(super) unit: &'a Unit<'a>,
    pub(super) text: String,
    depth: usize,
    /// What the variables of the loops around can be.
    pub(super) ranges: BTreeMap<VarId, Interval>,
    /// The blocks of the grid.
    grid: [u32; 3],
    /// The threads of a block, and of those the axes whose loops are open.
    pub(super) block: [u32; 3],
    threads: BTreeSet<Axis>,
    /// Where each shared buffer begins.
    pub(super) shared: BTreeMap<TensorId, i64>,
    /// Where the shared memory begins that threads are combined by.
    pub(super) combine_room: i64,
    /// What the kernel is called with.
    pub(super) arguments: Vec<Argument>,
    pub(super) functions: BTreeSet<(String, DType)>,
    pub(super) checks: &'a mut Vec<Check>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        unit: &'a Unit<'a>,
        (grid, block): ([u32; 3], [u32; 3]),
        (shared, combine_room): (BTreeMap<TensorId, i64>, i64),
        checks: &'a mut Vec<Check>,
    ) -> Emitter<'a> {
        Emitter {
            unit,
            text: String::new(),
            depth: 1,
            ranges: BTreeMap::new(),
            grid,
            block,
            threads: BTreeSet::new(),
            shared,
            combine_room,
            arguments: Vec::new(),
            functions: BTreeSet::new(),
            checks,
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(super) fn open(&mut self, head: &str) {
        self.line(&format!("{head}{{"));
        self.depth += 1;
    }

    pub(super) fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// Notes that a function of the prelude is used, and gives its name.
    pub(super) fn needs(&mut self, base: &str, dtype: DType) -> String {
        self.functions.insert((base.to_owned(), dtype));
        prelude::name(base, dtype)
    }

    fn uses(&mut self, argument: Argument) {
        if !self.arguments.contains(&argument) {
            self.arguments.push(argument);
        }
    }

    pub(super) fn stmts(&mut self, stmts: &[Stmt]) -> Emit<()> {
        stmts.iter().try_for_each(|stmt| match stmt {
            Stmt::For(inner) => self.for_loop(inner),
            Stmt::If(choice) => self.choice(choice),
            Stmt::Allocate(room) => self.allocate(room),
            Stmt::Store(store) => self.in_thread(|this| this.store(store)),
            // A GPU has other threads to run while one waits.
            Stmt::Prefetch(_) => Ok(()),
            Stmt::Sync(sync) => {
                if let Some(line) = dialect::sync(self.unit.api, *sync) {
                    self.line(&line);
                }
                Ok(())
            }
            Stmt::Combine(_) => {
                Err(CodegenError::Unsupported("threads that are combined beside something else".into()))
            }
        })
    }

    // Loops.

    fn for_loop(&mut self, inner: &For) -> Emit<()> {
        if let Some(combining) = inner.combining() {
            return self.combine(&combining);
        }
        let (_, most) = self.range(&inner.extent).unwrap_or((0, i128::from(i64::MAX)));
        self.host_variables(&inner.extent);
        self.ranges.insert(inner.var, (0, (most - 1).max(0)));
        let done = match inner.kind {
            LoopKind::Block(axis) => {
                let running = i64::from(self.grid[axis as usize]);
                self.spread(inner, dialect::block_index(self.unit.api, axis), running)
            }
            LoopKind::Thread(axis) => self.thread_loop(inner, axis),
            LoopKind::Serial | LoopKind::Parallel => self.counted(inner, None),
            LoopKind::Unrolled => self.counted(inner, Some(dialect::unroll(self.unit.api))),
            LoopKind::Vector => match self.wide_copy(inner)? {
                true => Ok(()),
                false => self.counted(inner, Some(dialect::unroll(self.unit.api))),
            },
        };
        self.ranges.remove(&inner.var);
        done
    }

    fn counted(&mut self, inner: &For, hint: Option<&str>) -> Emit<()> {
        let (var, extent) = (self.unit.names.var(inner.var).to_owned(), self.index(&inner.extent)?);
        if let Some(hint) = hint {
            self.line(hint);
        }
        self.open(&format!("for ({} {var} = 0; {var} < {extent}; ++{var}) ", self.index_type()));
        self.stmts(&inner.body)?;
        self.close();
        Ok(())
    }

    /// One iteration for each block or thread; `running` of them run the statement.
    fn spread(&mut self, inner: &For, index: String, running: i64) -> Emit<()> {
        let var = self.unit.names.var(inner.var).to_owned();
        let extent = inner.extent.as_constant().unwrap_or(1);
        self.open("");
        self.line(&format!("const {} {var} = {index};", self.index_type()));
        if running == extent {
            self.stmts(&inner.body)?;
        } else {
            self.open(&format!("if ({var} < {extent}) "));
            self.stmts(&inner.body)?;
            self.close();
        }
        self.close();
        Ok(())
    }

    /// The variable of a loop over threads, of which every thread has one, be it in the loop or not.
    pub(super) fn thread_variable(&mut self, own: &For) {
        let Some(axis) = own.thread_axis() else { return };
        let most = i128::from(self.block[axis as usize]);
        self.ranges.insert(own.var, (0, (most - 1).max(0)));
        let (var, index) = (self.unit.names.var(own.var), dialect::thread_index(self.unit.api, axis));
        self.line(&format!("const {} {var} = {index};", self.index_type()));
    }

    fn thread_loop(&mut self, inner: &For, axis: Axis) -> Emit<()> {
        self.threads.insert(axis);
        let running = i64::from(self.block[axis as usize]);
        let done = self.spread(inner, dialect::thread_index(self.unit.api, axis), running);
        self.threads.remove(&axis);
        done
    }

    /// What is not in a thread loop of every axis that has several threads is done by the first of these.
    fn in_thread(&mut self, emit: impl FnOnce(&mut Self) -> Emit<()>) -> Emit<()> {
        let idle: Vec<String> = Axis::ALL
            .into_iter()
            .filter(|axis| self.block[*axis as usize] > 1 && !self.threads.contains(axis))
            .map(|axis| format!("{} == 0", dialect::thread_index(self.unit.api, axis)))
            .collect();
        if idle.is_empty() {
            return emit(self);
        }
        self.open(&format!("if ({}) ", idle.join(" && ")));
        emit(self)?;
        self.close();
        Ok(())
    }

    // Choices and buffers.

    fn choice(&mut self, choice: &If) -> Emit<()> {
        let mut conditions = Vec::new();
        for condition in &choice.conditions {
            conditions.push(self.condition(condition)?);
        }
        let all = if conditions.is_empty() { "true".to_owned() } else { conditions.join(" && ") };
        self.open(&format!("if ({all}) "));
        self.stmts(&choice.then)?;
        self.depth -= 1;
        if !choice.otherwise.is_empty() {
            self.line("} else {");
            self.depth += 1;
            self.stmts(&choice.otherwise)?;
            self.depth -= 1;
        }
        self.line("}");
        Ok(())
    }

    pub(super) fn condition(&mut self, condition: &IndexExpr) -> Emit<String> {
        self.host_variables(condition);
        Ok(format!("{} >= 0", self.index(condition)?))
    }

    fn allocate(&mut self, room: &Allocate) -> Emit<()> {
        let api = self.unit.api;
        let buffer = self.unit.nest.buffer(room.buffer);
        let name = self.unit.names.buffer(room.buffer).to_owned();
        match buffer.scope {
            Scope::Shared => {
                let (space, t) = (dialect::shared(api), memory_type(api, buffer.dtype));
                let offset = self.shared.get(&room.buffer).copied().unwrap_or(0);
                self.line(&format!("{space}{t}* const {name} = ({space}{t}*)(tw_shared + {offset});"));
            }
            Scope::Register | Scope::Scratch => {
                let t = match buffer.scope {
                    Scope::Register => value_type(api, buffer.dtype),
                    _ => memory_type(api, buffer.dtype),
                };
                let elements = self.unit.own_elements(room.buffer);
                self.line(&format!("{t} {name}[{elements}];"));
            }
            Scope::Argument(_) | Scope::Constant => {
                return Err(CodegenError::Unsupported(format!("room for `{}` in a kernel", buffer.name)));
            }
        }
        self.stmts(&room.body)
    }

    // Accesses.

    /// The variables of the host's loops that an expression needs.
    fn host_variables(&mut self, index: &IndexExpr) {
        for var in super::index::all_vars(index) {
            if self.unit.host_vars.contains(&var) {
                self.uses(Argument::Variable(var));
            }
        }
    }

    /// The subscripts of an access as one number; those that depend on data are checked.
    fn place(&mut self, access: &Access) -> Emit<String> {
        let nest = self.unit.nest;
        let buffer = nest.buffer(access.tensor);
        let spread = self.unit.spread_dimensions(access.tensor);
        let (mut plain, mut checked) = (IndexExpr::constant(0), Vec::new());
        for (dimension, (index, stride)) in
            access.indices.iter().zip(self.unit.own_strides(access.tensor)).enumerate()
        {
            self.host_variables(index);
            if spread.contains(&dimension) {
                continue;
            }
            if index.has_data() {
                let at = self.checked_index(access, dimension, index, buffer)?;
                checked.push(if stride == 1 { at } else { format!("{at} * {}", self.number(stride)) });
            } else {
                plain = plain.add(&index.scale(stride));
            }
        }
        let plain = plain.joined();
        if plain.is_overflow() {
            return Err(CodegenError::Unsupported(format!(
                "the subscripts of `{}` are too long",
                buffer.name
            )));
        }
        let mut parts = checked;
        if plain.as_constant() != Some(0) || parts.is_empty() {
            parts.push(self.index(&plain)?);
        }
        Ok(parts.join(" + "))
    }

    fn checked_index(
        &mut self,
        access: &Access,
        dimension: usize,
        index: &IndexExpr,
        buffer: &Buffer,
    ) -> Emit<String> {
        let check = Check { buffer: access.tensor, dimension, origin: access.origin };
        let same = |other: &Check| {
            (other.buffer, other.dimension) == (check.buffer, check.dimension)
                && (other.origin.start, other.origin.end) == (check.origin.start, check.origin.end)
        };
        let at = self.checks.iter().position(same).unwrap_or_else(|| {
            self.checks.push(check);
            self.checks.len() - 1
        });
        self.uses(Argument::Status);
        let function = self.needs("tw_checked", self.index_dtype());
        let text = self.index(index)?;
        let extent = self.number(buffer.shape[dimension]);
        Ok(format!("{function}({text}, {extent}, status, {})", at + 1))
    }

    /// `A[...]`.
    fn element(&mut self, access: &Access) -> Emit<String> {
        if self.unit.is_parameter(access.tensor) {
            self.uses(Argument::Buffer(access.tensor));
        }
        let place = self.place(access)?;
        Ok(format!("{}[{place}]", self.unit.names.buffer(access.tensor)))
    }

    /// What is in memory as a value.
    pub(super) fn load(&mut self, access: &Access) -> Emit<String> {
        let element = self.element(access)?;
        Ok(match self.stored_type(access.tensor) {
            Some(half @ (DType::Float16 | DType::BFloat16)) => {
                format!("{}({element})", self.needs("tw_load_half", half))
            }
            Some(DType::Bool) => format!("({element} != 0)"),
            _ => element,
        })
    }

    /// The type of a buffer in memory; none for registers, which hold values.
    fn stored_type(&self, tensor: TensorId) -> Option<DType> {
        let buffer = self.unit.nest.buffer(tensor);
        (buffer.scope != Scope::Register).then_some(buffer.dtype)
    }

    pub(super) fn scalar(&mut self, id: ScalarId, dtype: DType) -> String {
        self.uses(Argument::Scalar(id));
        let name = self.unit.scalar_name(id);
        match dtype {
            DType::Float16 | DType::BFloat16 => format!("{}({name})", self.needs("tw_load_half", dtype)),
            DType::Bool => format!("({name} != 0)"),
            _ => name,
        }
    }

    /// A copy to shared memory that the thread does not wait for.
    fn copy_later(&mut self, to: &Access, value: &Expr, bytes: i64) -> Emit<()> {
        let target = self.element(to)?;
        let (source, given) = match &value.kind {
            ExprKind::Select(parts) => (&parts[1], Some(self.value(&parts[0])?)),
            _ => (value, None),
        };
        let ExprKind::Load(from) = &source.kind else {
            return Err(CodegenError::Unsupported("a store that is done later, and no copy".into()));
        };
        let source = self.element(from)?;
        let function = self.needs(&format!("tw_copy_later_{bytes}"), DType::Bool);
        let first = self.unit.names.buffer(from.tensor);
        self.line(&match given {
            // Nothing is read where the condition fails, but the address must be one.
            Some(given) => format!("{function}(&{target}, {given} ? &{source} : {first}, {given});"),
            None => format!("{function}(&{target}, &{source}, true);"),
        });
        Ok(())
    }

    fn store(&mut self, store: &Store) -> Emit<()> {
        if store.later && self.unit.has_later_copies {
            let bytes = self.unit.nest.buffer(store.target.tensor).dtype.bytes() as i64;
            return self.copy_later(&store.target, &store.value, bytes);
        }
        let value = self.value(&store.value)?;
        self.put(store, value)
    }

    /// Stores a value as a statement says.
    pub(super) fn put(&mut self, store: &Store, value: String) -> Emit<()> {
        let target = self.element(&store.target)?;
        let dtype = store.value.dtype;
        let value = match store.reduce {
            None => value,
            Some(op) => {
                let total = self.load(&store.target)?;
                if op == tilewright_ir::ReduceOp::Add && dtype.is_float() && total == target {
                    self.line(&format!("{target} += {};", bare(&value)));
                    return Ok(());
                }
                self.reduced(op, &total, &value, dtype)
            }
        };
        let value = match self.stored_type(store.target.tensor) {
            Some(half @ (DType::Float16 | DType::BFloat16)) => {
                format!("{}({value})", self.needs("tw_store_half", half))
            }
            _ => value,
        };
        self.line(&format!("{target} = {};", bare(&value)));
        Ok(())
    }

    // Accesses of several elements at once.

    /// A vector loop that only copies neighbours becomes one access of all of them, where both sides are aligned.
    fn wide_copy(&mut self, inner: &For) -> Emit<bool> {
        let [Stmt::Store(store)] = inner.body.as_slice() else { return Ok(false) };
        let (ExprKind::Load(source), None) = (&store.value.kind, store.reduce) else { return Ok(false) };
        let lanes = inner.extent.as_constant().unwrap_or(0);
        let dtype = self.unit.nest.buffer(source.tensor).dtype;
        let bytes = lanes * dtype.bytes() as i64;
        let same = self.unit.nest.buffer(store.target.tensor).dtype == dtype && store.value.dtype == dtype;
        let plain = matches!(dtype, DType::Float32 | DType::Int32 | DType::UInt32);
        if !same || !plain || !matches!(lanes, 2 | 4) || bytes > WIDEST_ACCESS {
            return Ok(false);
        }
        let (source, target) =
            (lane_alone(source, inner.var, lanes), lane_alone(&store.target, inner.var, lanes));
        let (Some(from), Some(to)) =
            (self.aligned(&source, inner.var, lanes), self.aligned(&target, inner.var, lanes))
        else {
            return Ok(false);
        };
        let first = |access: &Access, indices: Vec<IndexExpr>| Access { indices, ..access.clone() };
        let (from, to) = (first(&source, from), first(&target, to));
        if store.later && self.unit.has_later_copies {
            let value = Expr { dtype, kind: ExprKind::Load(from) };
            self.in_thread(|this| this.copy_later(&to, &value, bytes))?;
            return Ok(true);
        }
        self.in_thread(|this| this.copy_lanes(&from, &to, dtype, lanes))?;
        Ok(true)
    }

    fn copy_lanes(&mut self, from: &Access, to: &Access, dtype: DType, lanes: i64) -> Emit<()> {
        let api = self.unit.api;
        let (source, target) = (self.element(from)?, self.element(to)?);
        let t = match dtype {
            DType::UInt32 => format!("uint{lanes}"),
            _ => format!("{}{lanes}", value_type(api, dtype)),
        };
        let space = |this: &Self, tensor: TensorId| match this.unit.nest.buffer(tensor).scope {
            Scope::Shared => dialect::shared(api),
            Scope::Register | Scope::Scratch if !this.unit.is_parameter(tensor) => "",
            _ => dialect::global(api),
        };
        let registers =
            |this: &Self, tensor: TensorId| this.unit.nest.buffer(tensor).scope == Scope::Register;
        let load = format!("*(const {}{t}*)&{source}", space(self, from.tensor));
        match (registers(self, from.tensor), registers(self, to.tensor)) {
            (false, false) => self.line(&format!("*({}{t}*)&{target} = {load};", space(self, to.tensor))),
            (false, true) => {
                self.open("");
                self.line(&format!("const {t} lanes = {load};"));
                let elements = self.lane_elements(to, lanes)?;
                for (element, lane) in elements.iter().zip(["x", "y", "z", "w"]) {
                    self.line(&format!("{element} = lanes.{lane};"));
                }
                self.close();
            }
            _ => {
                let elements = self.lane_elements(from, lanes)?.join(", ");
                let made = match api {
                    GpuApi::Cuda => format!("make_{t}({elements})"),
                    GpuApi::OpenCl => format!("({t})({elements})"),
                };
                self.line(&format!("*({}{t}*)&{target} = {made};", space(self, to.tensor)));
            }
        }
        Ok(())
    }

    fn lane_elements(&mut self, first: &Access, lanes: i64) -> Emit<Vec<String>> {
        (0..lanes)
            .map(|lane| {
                let mut access = first.clone();
                if let Some(last) = access.indices.last_mut() {
                    *last = last.offset(lane);
                }
                self.element(&access)
            })
            .collect()
    }

    /// The subscripts of the first lane, if lanes are neighbours and begin at a multiple of their number.
    fn aligned(&self, access: &Access, lane: VarId, lanes: i64) -> Option<Vec<IndexExpr>> {
        let (last, others) = access.indices.split_last()?;
        // Which row it is may depend on data, if it is the same for all lanes: rows are whole numbers of accesses.
        let others_differ = others.iter().any(|index| index.mentions(lane));
        let (step, first) = last.split_on(&Atom::Var(lane))?;
        if others_differ || step.as_constant() != Some(1) || first.mentions(lane) || first.has_data() {
            return None;
        }
        let spread = self.unit.spread_dimensions(access.tensor);
        let strides = self.unit.own_strides(access.tensor);
        let mut place = first.clone();
        for (dimension, (index, stride)) in others.iter().zip(&strides).enumerate() {
            if !spread.contains(&dimension) {
                place = place.add(&index.scale(*stride));
            }
        }
        let mut indices = others.to_vec();
        indices.push(first);
        is_multiple(&place.joined(), lanes).then_some(indices)
    }
}

/// An access with the lane taken out of quotients and remainders, where lanes begin at a multiple of their number:
/// `(4*t + lane) % 128` is `4*t % 128 + lane`.
fn lane_alone(access: &Access, lane: VarId, lanes: i64) -> Access {
    let alone = |atom: &Atom| {
        let (Atom::FloorDiv(pair) | Atom::Mod(pair)) = atom else { return None };
        let (step, first) = pair.0.split_on(&Atom::Var(lane))?;
        let by = pair.1.as_constant()?;
        let whole = step.as_constant() == Some(1) && by % lanes == 0 && is_multiple(&first, lanes);
        whole.then(|| match atom {
            Atom::FloorDiv(_) => first.floor_div(&pair.1),
            _ => first.modulo(&pair.1).add(&IndexExpr::var(lane)),
        })
    };
    let indices = access.indices.iter().map(|index| index.substitute(&mut |atom| alone(atom))).collect();
    Access { indices, ..access.clone() }
}

/// A value without the parentheses around all of it.
fn bare(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else { return text };
    let mut depth = 0i32;
    for letter in inner.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return text;
        }
    }
    inner
}
