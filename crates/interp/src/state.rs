//! Stores the tensors, scalars and variables of a running program or loop nest ([`State`]), and
//! evaluates expressions and subscripts with them. Every access is checked.

use std::cell::RefCell;

use tilewright_ir::ids::{Id, Ids};
use tilewright_ir::print::Names;
use tilewright_ir::{Access, Atom, BinaryOp, Data, Expr, ExprKind, IndexExpr, Number, Origin};

use crate::error::{OutOfBounds, Race, RunError, Undefined};
use crate::memory::Memory;
use crate::races::{Conflict, RaceDetector};
use crate::value::Value;

pub(crate) type RunResult<T> = Result<T, RunError>;

/// A subscript, or the index of an element in row-major order.
#[derive(Clone, Copy)]
pub(crate) struct IndexValue<T> {
    /// The subscript or index.
    pub(crate) value: T,
    /// Whether the value is the same in every kernel. It may depend on data that differs by
    /// rounding.
    pub(crate) is_certain: bool,
}

/// The tensors, scalars and variables, with their values.
pub(crate) struct State<'a, I: Ids, V: Value = Number> {
    names: &'a dyn Names<I>,
    pub(crate) memory: Vec<Memory<V>>,
    scalars: Vec<Number>,
    pub(crate) vars: Vec<i64>,
    /// The variables that currently have a value, for error messages.
    pub(crate) live: Vec<I::Var>,
    /// Tracks the threads of a GPU, if the nest has any.
    pub(crate) races: Option<RefCell<RaceDetector>>,
}

impl<'a, I: Ids, V: Value> State<'a, I, V> {
    pub(crate) fn new(
        names: &'a dyn Names<I>,
        memory: Vec<Memory<V>>,
        scalars: Vec<Number>,
        vars: usize,
    ) -> Self {
        State { names, memory, scalars, vars: vec![0; vars], live: Vec::new(), races: None }
    }

    /// The index of an element in row-major order.
    pub(crate) fn element_index(
        &self,
        tensor: I::Tensor,
        indices: &[IndexExpr<I>],
        origin: Origin,
    ) -> RunResult<IndexValue<usize>> {
        let mut place = 0;
        let mut all_certain = true;
        for (dimension, index) in indices.iter().enumerate() {
            let IndexValue { value, is_certain } = self.eval_subscript(index, origin)?;
            all_certain &= is_certain;
            let extent = self.memory[tensor.index()].tensor.shape()[dimension];
            if value < 0 || value >= extent as i64 {
                return Err(self.out_of_bounds(tensor, indices, dimension, origin));
            }
            place = place * extent + value as usize;
        }
        Ok(IndexValue { value: place, is_certain: all_certain })
    }

    pub(crate) fn store(&mut self, tensor: I::Tensor, index: usize, value: V) -> RunResult<()> {
        if let Some(watch) = &self.races {
            let met = watch.borrow_mut().write(tensor, index);
            met.map_err(|meeting| self.race(tensor, index, meeting))?;
        }
        self.memory[tensor.index()].store(index, value);
        Ok(())
    }

    fn race(&self, tensor: I::Tensor, index: usize, meeting: Conflict) -> RunError {
        RunError::Race(Box::new(Race {
            tensor: self.names.tensor(tensor).to_owned(),
            element: self.memory[tensor.index()].subscripts(index),
            first: meeting.first,
            second: meeting.second,
        }))
    }

    pub(crate) fn load(&self, tensor: I::Tensor, index: usize, origin: Origin) -> RunResult<V> {
        if let Some(watch) = &self.races {
            let met = watch.borrow_mut().read(tensor, index);
            met.map_err(|meeting| self.race(tensor, index, meeting))?;
        }
        self.defined_value(tensor, index, origin)
    }

    /// The value of an element that an atomic update replaces.
    pub(crate) fn load_atomically(&self, tensor: I::Tensor, index: usize, origin: Origin) -> RunResult<V> {
        if let Some(watch) = &self.races {
            let met = watch.borrow_mut().update(tensor, index);
            met.map_err(|meeting| self.race(tensor, index, meeting))?;
        }
        self.defined_value(tensor, index, origin)
    }

    fn defined_value(&self, tensor: I::Tensor, index: usize, origin: Origin) -> RunResult<V> {
        let memory = &self.memory[tensor.index()];
        memory.load(index).ok_or_else(|| {
            RunError::Undefined(Box::new(Undefined {
                tensor: self.names.tensor(tensor).to_owned(),
                element: memory.subscripts(index),
                point: self.live_values(),
                origin,
            }))
        })
    }

    fn out_of_bounds(
        &self,
        tensor: I::Tensor,
        indices: &[IndexExpr<I>],
        dimension: usize,
        origin: Origin,
    ) -> RunError {
        let element =
            indices.iter().map(|index| self.eval_index(index, origin).unwrap_or(i64::MIN)).collect();
        RunError::OutOfBounds(Box::new(OutOfBounds {
            tensor: self.names.tensor(tensor).to_owned(),
            shape: self.memory[tensor.index()].tensor.shape().to_vec(),
            element,
            dimension,
            declared_bounds: None,
            point: self.live_values(),
            origin,
        }))
    }

    fn live_values(&self) -> Vec<(String, i64)> {
        self.live.iter().map(|var| (self.names.var(*var).to_owned(), self.vars[var.index()])).collect()
    }

    /// The value of a subscript. A value beyond 64 bits becomes `i64::MIN`, which is outside every
    /// tensor.
    pub(crate) fn eval_index(&self, index: &IndexExpr<I>, origin: Origin) -> RunResult<i64> {
        self.eval_subscript(index, origin).map(|subscript| subscript.value)
    }

    fn eval_subscript(&self, index: &IndexExpr<I>, origin: Origin) -> RunResult<IndexValue<i64>> {
        let mut failure = None;
        let mut is_certain = true;
        let value = index.eval(&mut |atom| match atom {
            Atom::Var(var) => Some(self.vars[var.index()]),
            Atom::Data(data) => match self.eval_data(data, origin) {
                Ok(value) => {
                    is_certain &= value.is_certain;
                    Some(value.value)
                }
                Err(error) => {
                    failure.get_or_insert(error);
                    None
                }
            },
            _ => None,
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(IndexValue { value: value.unwrap_or(i64::MIN), is_certain }),
        }
    }

    /// An integer from data, checked against the bounds that the program declares for it.
    fn eval_data(&self, data: &Data<I>, origin: Origin) -> RunResult<IndexValue<i64>> {
        let found = self.eval(&data.value)?;
        let value = i64::try_from(found.number().as_i128()).unwrap_or(i64::MAX);
        let place = IndexValue { value, is_certain: found.is_exact() };
        let Some((from, to)) = &data.declared else { return Ok(place) };
        let (from, to) = (self.eval_index(from, origin)?, self.eval_index(to, origin)?);
        if (from..to).contains(&value) {
            return Ok(place);
        }
        Err(RunError::OutOfBounds(Box::new(OutOfBounds {
            tensor: String::new(),
            shape: Vec::new(),
            element: vec![value],
            dimension: 0,
            declared_bounds: Some((from, to)),
            point: self.live_values(),
            origin,
        })))
    }

    /// The value of an expression, rounded or wrapped to its type after every operation.
    pub(crate) fn eval(&self, expr: &Expr<I>) -> RunResult<V> {
        Ok(match &expr.kind {
            ExprKind::Literal(number) => V::exact(*number),
            ExprKind::Index(index) => {
                let index = self.eval_subscript(index, Origin::default())?;
                let value = V::exact(Number::Int(index.value as i128).convert(expr.dtype));
                if index.is_certain { value } else { value.as_undecided() }
            }
            ExprKind::Scalar(scalar) => V::exact(self.scalars[scalar.index()]),
            ExprKind::Load(Access { tensor, indices, origin }) => {
                let place = self.element_index(*tensor, indices, *origin)?;
                let value = self.load(*tensor, place.value, *origin)?;
                if place.is_certain { value } else { value.as_undecided() }
            }
            ExprKind::Unary(op, operand) => self.eval(operand)?.unary(*op, expr.dtype),
            ExprKind::Binary(op, operands) if op.is_logical() => self.logical(*op, operands, expr)?,
            ExprKind::Binary(op, operands) => {
                let left = self.eval(&operands[0])?;
                left.binary(*op, self.eval(&operands[1])?, expr.dtype)
            }
            ExprKind::Select(operands) => self.select(operands)?,
            ExprKind::Call(builtin, arguments) => {
                let arguments: Vec<V> =
                    arguments.iter().map(|argument| self.eval(argument)).collect::<RunResult<_>>()?;
                V::call(*builtin, &arguments, expr.dtype)
            }
            ExprKind::Cast(operand) => self.eval(operand)?.convert(expr.dtype),
        })
    }

    /// `&&` and `||`. The second operand is not evaluated if the first decides. If only some
    /// kernels evaluate the second operand, its evaluation may fail; the result is then undecided.
    fn logical(&self, op: BinaryOp, operands: &[Expr<I>; 2], expr: &Expr<I>) -> RunResult<V> {
        let left = self.eval(&operands[0])?;
        let is_enough = left.number().is_true() == (op == BinaryOp::Or);
        match (is_enough, left.has_certain_truth()) {
            (true, true) => Ok(left),
            (true, false) => Ok(match self.eval(&operands[1]) {
                Ok(right) => left.binary(op, right, expr.dtype),
                Err(_) => left.as_undecided(),
            }),
            (false, _) => Ok(left.binary(op, self.eval(&operands[1])?, expr.dtype)),
        }
    }

    /// `condition ? then : otherwise`
    fn select(&self, operands: &[Expr<I>; 3]) -> RunResult<V> {
        let condition = self.eval(&operands[0])?;
        let [then, otherwise] = [&operands[1], &operands[2]];
        let (chosen, other) =
            if condition.number().is_true() { (then, otherwise) } else { (otherwise, then) };
        let value = self.eval(chosen)?;
        if condition.has_certain_truth() {
            Ok(value)
        } else {
            Ok(value.or_alternative(self.eval(other).ok()))
        }
    }
}
