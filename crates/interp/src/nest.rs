//! Runs loop nests, statement by statement in the order of the text.
//!
//! Vector, parallel and unrolled loops run one iteration after the other, and so do loops over the
//! blocks and threads of a GPU. [`Order`] selects the direction of loops whose iterations may run
//! in any order. The interpreter tracks the accesses of GPU threads. It is an error if two threads
//! conflict without a barrier between them, or if a thread reads a register of another.
//!
//! A reduction rounds to the compute type of its buffer after every step, as compiled code does.
//! Its result may therefore differ from that of the program, which rounds once. The content of a
//! 16-bit float buffer is rounded to the buffer's own type.
//!
//! Scratch, register and constant buffers and the results start out undefined. Scratch and register
//! buffers become undefined again when their allocation ends. Reading an undefined element is an
//! error. In `setup` only constant inputs are defined, because the others may change between calls.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tilewright_ir::ids::InNest;
use tilewright_ir::nest::{Allocate, Buffer, Combine, For, If, LoopKind, LoopNest, Scope, Stmt, Store, Sync};
use tilewright_ir::{Number, Origin, Program, Role, Tensor, arithmetic};

use crate::error::RunError;
use crate::memory::{Inputs, Memory, check_type_and_shape, initial_tensors, result_tensors, scalar_values};
use crate::races::RaceDetector;
use crate::state::{RunResult, State};

/// The order in which the iterations of parallel and vector loops and of loops over the blocks and
/// threads of a GPU run. A nest whose results depend on this order is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last.
    Ascending,
    /// From the last to the first.
    Descending,
}

/// Runs a loop nest that `verify_nest` accepts, and returns the results of its program by name.
///
/// The buffers of scope [`Scope::Argument`] are the tensors of `program`, which says which of them
/// the caller supplies and which it gets back. `setup` runs once, then `body`.
pub fn run_nest(
    nest: &LoopNest,
    program: &Program,
    mut inputs: Inputs,
    order: Order,
) -> Result<BTreeMap<String, Tensor>, RunError> {
    let mut arguments = initial_tensors(program, &mut inputs)?;
    let memory = nest.buffers.iter().map(undefined_buffer).collect::<RunResult<Vec<Memory>>>()?;
    check_arguments(nest, &arguments)?;
    let scalars = scalar_values(program, &nest.scalars, &inputs)?;
    let mut state = State::new(nest, memory, scalars, nest.vars.len());
    state.races = RaceDetector::for_nest(nest).map(RefCell::new);
    let mut machine = NestInterpreter { nest, state, order };
    let constant = |role: Role| role == Role::Input { constant: true };

    machine.swap_arguments(program, &mut arguments, constant);
    machine.run_statements(&nest.setup)?;
    machine.swap_arguments(program, &mut arguments, |role| !constant(role));
    machine.run_statements(&nest.body)?;
    machine.swap_arguments(program, &mut arguments, |_| true);
    result_tensors(program, arguments)
}

fn undefined_buffer(buffer: &Buffer) -> RunResult<Memory> {
    Ok(Memory::all_undefined(buffer.dtype, &shape(buffer))?)
}

fn shape(buffer: &Buffer) -> Vec<usize> {
    buffer.shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect()
}

/// Checks that every argument of the nest is a tensor of the program, of the same type and shape.
fn check_arguments(nest: &LoopNest, tensors: &[Memory]) -> RunResult<()> {
    for buffer in &nest.buffers {
        if let Scope::Argument(id) = buffer.scope {
            let found = tensors.get(id.index()).ok_or_else(|| RunError::Missing(buffer.name.clone()))?;
            check_type_and_shape(&buffer.name, (buffer.dtype, &shape(buffer)), &found.tensor)?;
        }
    }
    Ok(())
}

struct NestInterpreter<'a> {
    nest: &'a LoopNest,
    state: State<'a, InNest>,
    order: Order,
}

impl NestInterpreter<'_> {
    /// Swaps the memory of argument buffers with that of the program's tensors whose role passes
    /// the test.
    fn swap_arguments(&mut self, program: &Program, tensors: &mut [Memory], test: impl Fn(Role) -> bool) {
        for (buffer, memory) in self.nest.buffers.iter().zip(&mut self.state.memory) {
            match buffer.scope {
                Scope::Argument(id) if test(program.tensor(id).role) => {
                    std::mem::swap(memory, &mut tensors[id.index()]);
                }
                _ => {}
            }
        }
    }

    fn run_statements(&mut self, statements: &[Stmt]) -> RunResult<()> {
        statements.iter().try_for_each(|statement| match statement {
            Stmt::For(inner) => self.run_loop(inner),
            Stmt::If(inner) => self.branch(inner),
            Stmt::Allocate(inner) => self.allocate(inner),
            Stmt::Store(inner) => self.store(inner),
            Stmt::Prefetch(_) => Ok(()),
            Stmt::Sync(sync) => {
                if *sync == Sync::Barrier {
                    self.update_races(RaceDetector::barrier);
                }
                Ok(())
            }
            // `run_loop` has already executed the combination.
            Stmt::Combine(_) => Ok(()),
        })
    }

    fn run_loop(&mut self, inner: &For) -> RunResult<()> {
        let extent = self.state.eval_index(&inner.extent, Origin::default())?;
        let any_order = !matches!(inner.kind, LoopKind::Serial | LoopKind::Unrolled);
        let backwards = any_order && self.order == Order::Descending;
        let is_spread = matches!(inner.kind, LoopKind::Block(_) | LoopKind::Thread(_));
        self.state.live.push(inner.var);
        if is_spread {
            self.update_races(RaceDetector::enter);
        }
        let mut total = None;
        for at in 0..extent {
            let value = if backwards { extent - 1 - at } else { at };
            self.state.vars[inner.var.index()] = value;
            if is_spread {
                self.update_races(|watch| watch.next_iteration(inner.kind, value));
            }
            match inner.body.as_slice() {
                [Stmt::Combine(own)] => total = Some(self.combine(own, total)?),
                body => self.run_statements(body)?,
            }
        }
        if is_spread {
            self.update_races(|watch| watch.leave(inner.kind));
        }
        self.state.live.pop();
        match (inner.body.as_slice(), total) {
            ([Stmt::Combine(own)], Some(total)) => self.store_total(own, inner.kind, total),
            _ => Ok(()),
        }
    }

    /// Reduces this thread's value into the total of the threads before it.
    fn combine(&mut self, own: &Combine, total: Option<Number>) -> RunResult<Number> {
        let dtype = own.store.value.dtype;
        let total = total.unwrap_or_else(|| arithmetic::neutral(own.op, dtype));
        Ok(arithmetic::reduce(own.op, total, self.state.eval(&own.store.value)?, dtype))
    }

    /// Stores the total as the first thread. A total in registers belongs to all threads along the
    /// axis.
    fn store_total(&mut self, own: &Combine, kind: LoopKind, total: Number) -> RunResult<()> {
        let place = self.store_value(&own.store, total)?;
        if let LoopKind::Thread(axis) = kind {
            self.update_races(|watch| watch.share_along(own.store.target.tensor, place, axis));
        }
        Ok(())
    }

    fn update_races(&mut self, change: impl FnOnce(&mut RaceDetector)) {
        if let Some(watch) = &mut self.state.races {
            change(watch.get_mut());
        }
    }

    fn branch(&mut self, inner: &If) -> RunResult<()> {
        let mut all = true;
        for condition in &inner.conditions {
            all = all && self.state.eval_index(condition, Origin::default())? >= 0;
        }
        self.run_statements(if all { &inner.then } else { &inner.otherwise })
    }

    fn allocate(&mut self, inner: &Allocate) -> RunResult<()> {
        self.update_races(|watch| watch.allocate(inner.buffer));
        self.run_statements(&inner.body)?;
        self.state.memory[inner.buffer.index()].mark_undefined();
        Ok(())
    }

    fn store(&mut self, store: &Store) -> RunResult<()> {
        let value = self.state.eval(&store.value)?;
        self.store_value(store, value).map(|_| ())
    }

    /// Stores a value to the target of a store, and returns the index of the element.
    fn store_value(&mut self, store: &Store, value: Number) -> RunResult<usize> {
        let target = &store.target;
        let place = self.state.element_index(target.tensor, &target.indices, target.origin)?.value;
        let value = match store.reduce {
            None => value,
            Some(op) => {
                let total = match store.is_atomic {
                    true => self.state.load_atomically(target.tensor, place, target.origin)?,
                    false => self.state.load(target.tensor, place, target.origin)?,
                };
                arithmetic::reduce(op, total, value, store.value.dtype)
            }
        };
        match store.is_atomic {
            true => self.state.memory[target.tensor.index()].store(place, value),
            false => self.state.store(target.tensor, place, value)?,
        }
        Ok(place)
    }
}
