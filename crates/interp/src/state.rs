//! The state of a running program or loop nest, and the evaluation of expressions in it.

use std::cell::RefCell;

use tilewright_ir::print::Names;
use tilewright_ir::{
    Access, Atom, BinaryOp, Data, Expr, ExprKind, IndexExpr, Number, Origin, TensorId, VarId,
};

use crate::error::{OutOfBounds, Race, RunError, Undefined};
use crate::memory::Memory;
use crate::races::{Meeting, Watch};
use crate::value::Value;

pub(crate) type Run<T> = Result<T, RunError>;

/// A subscript, or the index of an element in row-major order.
#[derive(Clone, Copy)]
pub(crate) struct Place<T> {
    /// The subscript or index.
    pub(crate) at: T,
    /// Whether the value is the same in every kernel. It may depend on data that differs by
    /// rounding.
    pub(crate) is_certain: bool,
}

/// The tensors, scalars and variables, with their values.
pub(crate) struct State<'a, V: Value = Number> {
    names: &'a dyn Names,
    pub(crate) memory: Vec<Memory<V>>,
    scalars: Vec<Number>,
    pub(crate) vars: Vec<i64>,
    /// The variables that currently have a value, for error messages.
    pub(crate) live: Vec<VarId>,
    /// Tracks the threads of a GPU, if the nest has any.
    pub(crate) watch: Option<RefCell<Watch>>,
}

impl<'a, V: Value> State<'a, V> {
    pub(crate) fn new(
        names: &'a dyn Names,
        memory: Vec<Memory<V>>,
        scalars: Vec<Number>,
        vars: usize,
    ) -> Self {
        State { names, memory, scalars, vars: vec![0; vars], live: Vec::new(), watch: None }
    }

    /// The index of an element in row-major order.
    pub(crate) fn place(&self, tensor: TensorId, indices: &[IndexExpr], origin: Origin) -> Run<Place<usize>> {
        let mut place = 0;
        let mut all_certain = true;
        for (dimension, index) in indices.iter().enumerate() {
            let Place { at: value, is_certain } = self.subscript(index, origin)?;
            all_certain &= is_certain;
            let extent = self.memory[tensor.index()].tensor.shape()[dimension];
            if value < 0 || value >= extent as i64 {
                return Err(self.out_of_bounds(tensor, indices, dimension, origin));
            }
            place = place * extent + value as usize;
        }
        Ok(Place { at: place, is_certain: all_certain })
    }

    pub(crate) fn store(&mut self, tensor: TensorId, place: usize, value: V) -> Run<()> {
        if let Some(watch) = &self.watch {
            let met = watch.borrow_mut().write(tensor, place);
            met.map_err(|meeting| self.race(tensor, place, meeting))?;
        }
        self.memory[tensor.index()].store(place, value);
        Ok(())
    }

    fn race(&self, tensor: TensorId, place: usize, meeting: Meeting) -> RunError {
        RunError::Race(Box::new(Race {
            tensor: self.names.tensor(tensor).to_owned(),
            element: self.memory[tensor.index()].element(place),
            first: meeting.first,
            second: meeting.second,
        }))
    }

    pub(crate) fn load(&self, tensor: TensorId, place: usize, origin: Origin) -> Run<V> {
        if let Some(watch) = &self.watch {
            let met = watch.borrow_mut().read(tensor, place);
            met.map_err(|meeting| self.race(tensor, place, meeting))?;
        }
        let memory = &self.memory[tensor.index()];
        memory.load(place).ok_or_else(|| {
            RunError::Undefined(Box::new(Undefined {
                tensor: self.names.tensor(tensor).to_owned(),
                element: memory.element(place),
                point: self.point(),
                origin,
            }))
        })
    }

    fn out_of_bounds(
        &self,
        tensor: TensorId,
        indices: &[IndexExpr],
        dimension: usize,
        origin: Origin,
    ) -> RunError {
        let element = indices.iter().map(|index| self.index(index, origin).unwrap_or(i64::MIN)).collect();
        RunError::OutOfBounds(Box::new(OutOfBounds {
            tensor: self.names.tensor(tensor).to_owned(),
            shape: self.memory[tensor.index()].tensor.shape().to_vec(),
            element,
            dimension,
            declared: None,
            point: self.point(),
            origin,
        }))
    }

    fn point(&self) -> Vec<(String, i64)> {
        self.live.iter().map(|var| (self.names.var(*var).to_owned(), self.vars[var.index()])).collect()
    }

    /// The value of a subscript. A value beyond 64 bits becomes `i64::MIN`, which is outside every
    /// tensor.
    pub(crate) fn index(&self, index: &IndexExpr, origin: Origin) -> Run<i64> {
        self.subscript(index, origin).map(|subscript| subscript.at)
    }

    fn subscript(&self, index: &IndexExpr, origin: Origin) -> Run<Place<i64>> {
        let mut failure = None;
        let mut is_certain = true;
        let value = index.eval(&mut |atom| match atom {
            Atom::Var(var) => Some(self.vars[var.index()]),
            Atom::Data(data) => match self.data(data, origin) {
                Ok(value) => {
                    is_certain &= value.is_certain;
                    Some(value.at)
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
            None => Ok(Place { at: value.unwrap_or(i64::MIN), is_certain }),
        }
    }

    /// An integer from data, checked against the bounds that the program declares for it.
    fn data(&self, data: &Data, origin: Origin) -> Run<Place<i64>> {
        let found = self.value(&data.value)?;
        let value = i64::try_from(found.number().as_i128()).unwrap_or(i64::MAX);
        let place = Place { at: value, is_certain: found.is_exact() };
        let Some((from, to)) = &data.declared else { return Ok(place) };
        let (from, to) = (self.index(from, origin)?, self.index(to, origin)?);
        if (from..to).contains(&value) {
            return Ok(place);
        }
        Err(RunError::OutOfBounds(Box::new(OutOfBounds {
            tensor: String::new(),
            shape: Vec::new(),
            element: vec![value],
            dimension: 0,
            declared: Some((from, to)),
            point: self.point(),
            origin,
        })))
    }

    /// The value of an expression, rounded or wrapped to its type after every operation.
    pub(crate) fn value(&self, expr: &Expr) -> Run<V> {
        Ok(match &expr.kind {
            ExprKind::Literal(number) => V::exact(*number),
            ExprKind::Index(index) => {
                let index = self.subscript(index, Origin::default())?;
                let value = V::exact(Number::Int(index.at as i128).convert(expr.dtype));
                if index.is_certain { value } else { value.undecided() }
            }
            ExprKind::Scalar(scalar) => V::exact(self.scalars[scalar.index()]),
            ExprKind::Load(Access { tensor, indices, origin }) => {
                let place = self.place(*tensor, indices, *origin)?;
                let value = self.load(*tensor, place.at, *origin)?;
                if place.is_certain { value } else { value.undecided() }
            }
            ExprKind::Unary(op, operand) => self.value(operand)?.unary(*op, expr.dtype),
            ExprKind::Binary(op, operands) if op.is_logical() => self.logical(*op, operands, expr)?,
            ExprKind::Binary(op, operands) => {
                let left = self.value(&operands[0])?;
                left.binary(*op, self.value(&operands[1])?, expr.dtype)
            }
            ExprKind::Select(operands) => self.select(operands)?,
            ExprKind::Call(builtin, arguments) => {
                let arguments: Vec<V> =
                    arguments.iter().map(|argument| self.value(argument)).collect::<Run<_>>()?;
                V::call(*builtin, &arguments, expr.dtype)
            }
            ExprKind::Cast(operand) => self.value(operand)?.convert(expr.dtype),
        })
    }

    /// `&&` and `||`. The second operand is not evaluated if the first decides. If only some
    /// kernels evaluate the second operand, its evaluation may fail; the result is then undecided.
    fn logical(&self, op: BinaryOp, operands: &[Expr; 2], expr: &Expr) -> Run<V> {
        let left = self.value(&operands[0])?;
        let is_enough = left.number().is_true() == (op == BinaryOp::Or);
        match (is_enough, left.has_certain_truth()) {
            (true, true) => Ok(left),
            (true, false) => Ok(match self.value(&operands[1]) {
                Ok(right) => left.binary(op, right, expr.dtype),
                Err(_) => left.undecided(),
            }),
            (false, _) => Ok(left.binary(op, self.value(&operands[1])?, expr.dtype)),
        }
    }

    /// `condition ? then : otherwise`
    fn select(&self, operands: &[Expr; 3]) -> Run<V> {
        let condition = self.value(&operands[0])?;
        let [then, otherwise] = [&operands[1], &operands[2]];
        let (chosen, other) =
            if condition.number().is_true() { (then, otherwise) } else { (otherwise, then) };
        let value = self.value(chosen)?;
        if condition.has_certain_truth() { Ok(value) } else { Ok(value.or_other(self.value(other).ok())) }
    }
}
