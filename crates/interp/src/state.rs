//! What an expression can see while a program or a loop nest runs, and its value then.

use std::cell::RefCell;

use tilewright_ir::print::Names;
use tilewright_ir::{
    Access, Atom, BinaryOp, Data, Expr, ExprKind, IndexExpr, Number, Origin, TensorId, VarId, arithmetic,
};

use crate::error::{OutOfBounds, Race, RunError, Undefined};
use crate::memory::Memory;
use crate::races::{Meeting, Watch};

pub(crate) type Run<T> = Result<T, RunError>;

/// Tensors, scalars and variables with their values.
pub(crate) struct State<'a> {
    names: &'a dyn Names,
    pub(crate) memory: Vec<Memory>,
    scalars: Vec<Number>,
    pub(crate) vars: Vec<i64>,
    /// Variables that have a value, for messages.
    pub(crate) live: Vec<VarId>,
    /// Follows the threads of a GPU, where there are any.
    pub(crate) watch: Option<RefCell<Watch>>,
}

impl<'a> State<'a> {
    pub(crate) fn new(names: &'a dyn Names, memory: Vec<Memory>, scalars: Vec<Number>, vars: usize) -> Self {
        State { names, memory, scalars, vars: vec![0; vars], live: Vec::new(), watch: None }
    }

    /// The place of an element in row-major order.
    pub(crate) fn place(&self, tensor: TensorId, indices: &[IndexExpr], origin: Origin) -> Run<usize> {
        let mut place = 0;
        for (dimension, index) in indices.iter().enumerate() {
            let value = self.index(index, origin)?;
            let extent = self.memory[tensor.index()].tensor.shape()[dimension];
            if value < 0 || value >= extent as i64 {
                return Err(self.out_of_bounds(tensor, indices, dimension, origin));
            }
            place = place * extent + value as usize;
        }
        Ok(place)
    }

    pub(crate) fn store(&mut self, tensor: TensorId, place: usize, value: Number) -> Run<()> {
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

    pub(crate) fn load(&self, tensor: TensorId, place: usize, origin: Origin) -> Run<Number> {
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

    /// The value of a subscript. One that leaves 64 bits is outside of every tensor.
    pub(crate) fn index(&self, index: &IndexExpr, origin: Origin) -> Run<i64> {
        let mut failure = None;
        let value = index.eval(&mut |atom| match atom {
            Atom::Var(var) => Some(self.vars[var.index()]),
            Atom::Data(data) => match self.data(data, origin) {
                Ok(value) => Some(value),
                Err(error) => {
                    failure.get_or_insert(error);
                    None
                }
            },
            _ => None,
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(value.unwrap_or(i64::MIN)),
        }
    }

    /// An integer from data, checked against the bounds that the program declares for it.
    fn data(&self, data: &Data, origin: Origin) -> Run<i64> {
        let value = i64::try_from(self.value(&data.value)?.as_i128()).unwrap_or(i64::MAX);
        let Some((from, to)) = &data.declared else { return Ok(value) };
        let (from, to) = (self.index(from, origin)?, self.index(to, origin)?);
        if (from..to).contains(&value) {
            return Ok(value);
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
    pub(crate) fn value(&self, expr: &Expr) -> Run<Number> {
        Ok(match &expr.kind {
            ExprKind::Literal(number) => *number,
            ExprKind::Index(index) => {
                Number::Int(self.index(index, Origin::default())? as i128).convert(expr.dtype)
            }
            ExprKind::Scalar(scalar) => self.scalars[scalar.index()],
            ExprKind::Load(Access { tensor, indices, origin }) => {
                self.load(*tensor, self.place(*tensor, indices, *origin)?, *origin)?
            }
            ExprKind::Unary(op, operand) => arithmetic::unary(*op, self.value(operand)?, expr.dtype),
            ExprKind::Binary(op, operands) => {
                let left = self.value(&operands[0])?;
                match (op, left.is_true()) {
                    (BinaryOp::And, false) | (BinaryOp::Or, true) => left,
                    _ => arithmetic::binary(*op, left, self.value(&operands[1])?, expr.dtype),
                }
            }
            ExprKind::Select(operands) => {
                let chosen = if self.value(&operands[0])?.is_true() { &operands[1] } else { &operands[2] };
                self.value(chosen)?
            }
            ExprKind::Call(builtin, arguments) => {
                let arguments: Vec<Number> =
                    arguments.iter().map(|argument| self.value(argument)).collect::<Run<_>>()?;
                arithmetic::call(*builtin, &arguments, expr.dtype)
            }
            ExprKind::Cast(operand) => self.value(operand)?.convert(expr.dtype),
        })
    }
}
