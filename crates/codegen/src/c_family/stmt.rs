//! Statements of a kernel: loops, choices, stores.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::nest::{Allocate, Axis, Buffer, For, If, LoopKind, Scope, Stmt, Store};
use tilewright_ir::{Access, DType, Expr, ExprKind, IndexExpr, ScalarId, TensorId, VarId};

use super::dialect::{self, memory_type, value_type};
use super::expr::Stored;
use super::host::Argument;
use super::index::Interval;
use super::kernel::Unit;
use super::lanes::Lanes;
use super::prelude;
use crate::{Check, CodegenError};

pub(super) type Emit<T> = Result<T, CodegenError>;

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
    /// What the lanes of a vector loop have loaded together.
    pub(super) lanes: Lanes,
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
            lanes: Lanes::default(),
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
            Stmt::If(choice) => self.choice(choice, &mut |this, stmts| this.stmts(stmts)),
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
            LoopKind::Unrolled | LoopKind::Vector if self.serpentine(inner)? => Ok(()),
            LoopKind::Unrolled => self.counted(inner, Some(dialect::unroll(self.unit.api))),
            LoopKind::Vector => match self.vector_loop(inner)? {
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
    pub(super) fn in_thread(&mut self, emit: impl FnOnce(&mut Self) -> Emit<()>) -> Emit<()> {
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

    /// A choice, whose sides are written by `side`.
    pub(super) fn choice(
        &mut self,
        choice: &If,
        side: &mut dyn FnMut(&mut Self, &[Stmt]) -> Emit<()>,
    ) -> Emit<()> {
        let mut conditions = Vec::new();
        for condition in &choice.conditions {
            conditions.push(self.condition(condition)?);
        }
        let all = if conditions.is_empty() { "true".to_owned() } else { conditions.join(" && ") };
        self.open(&format!("if ({all}) "));
        side(self, &choice.then)?;
        self.depth -= 1;
        if !choice.otherwise.is_empty() {
            self.line("} else {");
            self.depth += 1;
            side(self, &choice.otherwise)?;
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
        let declared = index.declared(buffer.shape[dimension]);
        let is_declared = !declared.is_empty();
        let check = Check { buffer: access.tensor, dimension, is_declared, origin: access.origin };
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
        let mut text = self.index(index)?;
        if is_declared {
            let conditions = declared.iter().map(|own| self.condition(own)).collect::<Emit<Vec<String>>>()?;
            text = format!("{} ? {text} : -1", conditions.join(" && "));
        }
        let extent = self.number(buffer.shape[dimension]);
        Ok(format!("{function}({text}, {extent}, status, {})", at + 1))
    }

    /// `A[...]`.
    pub(super) fn element(&mut self, access: &Access) -> Emit<String> {
        if self.unit.is_parameter(access.tensor) {
            self.uses(Argument::Buffer(access.tensor));
        }
        let place = self.place(access)?;
        Ok(format!("{}[{place}]", self.unit.names.buffer(access.tensor)))
    }

    /// What is in memory as a value.
    pub(super) fn load(&mut self, access: &Access) -> Emit<String> {
        let element = match self.lanes.find(access) {
            Some(loaded) => loaded.to_owned(),
            None => self.element(access)?,
        };
        Ok(self.read(element, access.tensor))
    }

    /// An element of a buffer as a value.
    fn read(&mut self, element: String, of: TensorId) -> String {
        match self.stored_type(of) {
            Some(half @ (DType::Float16 | DType::BFloat16)) => {
                format!("{}({element})", self.needs("tw_load_half", half))
            }
            Some(DType::Bool) => format!("({element} != 0)"),
            _ => element,
        }
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
    pub(super) fn copy_later(&mut self, to: &Access, value: &Expr, bytes: i64) -> Emit<()> {
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

    pub(super) fn store(&mut self, store: &Store) -> Emit<()> {
        if store.later && self.unit.has_later_copies {
            let bytes = self.unit.nest.buffer(store.target.tensor).dtype.bytes() as i64;
            return self.copy_later(&store.target, &store.value, bytes);
        }
        let stored = self.stored(store)?;
        self.put(store, stored)
    }

    /// Stores a value as a statement says.
    pub(super) fn put(&mut self, store: &Store, stored: Stored) -> Emit<()> {
        let target = self.element(&store.target)?;
        self.put_at(target, store, stored);
        Ok(())
    }

    /// The same at a place that stands for the element.
    pub(super) fn put_at(&mut self, target: String, store: &Store, stored: Stored) {
        let dtype = store.value.dtype;
        let value = match (stored, store.reduce) {
            (Stored::Value(value), None) => value,
            (Stored::Product(left, right), _) => {
                let total = self.read(target.clone(), store.target.tensor);
                self.multiply_add(&left, &right, &total, dtype)
            }
            (Stored::Value(value), Some(op)) => {
                let total = self.read(target.clone(), store.target.tensor);
                if op == tilewright_ir::ReduceOp::Add && dtype.is_float() && total == target {
                    self.line(&format!("{target} += {};", bare(&value)));
                    return;
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
    }
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
