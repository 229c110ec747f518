//! Defines [`Derived`], a size that is computed from scalars when sizes are known, and computes it.
//!
//! `int bins = int(1 / sigma) + 3` makes `bins` a symbol like any size: the checks, the proofs and
//! all passes behind them know it as a number that is at least 0. Only the functions of this module
//! know where the number comes from. A front end calls [`Program::derived_values`] when sizes and
//! scalars are known. Whoever calls a kernel, or interprets a program, calls
//! [`DerivedSize::check`] with the scalars of the call, because the kernel holds the number that
//! other scalars may have given.
//!
//! **Invariant:** an accepted value is the one that the interpreter computes for the same
//! expression: floats are rounded after every operation, and a conversion to an integer truncates.
//! Where the interpreter would saturate or wrap, there is no value, but a [`DerivedError`].

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::arithmetic;
use crate::dtype::DType;
use crate::expr::{Expr, ExprKind, Origin};
use crate::index::{Atom, IndexExpr};
use crate::number::Number;
use crate::operators::{BinaryOp, UnaryOp};
use crate::print;
use crate::program::{Program, Scalar, ScalarId, SymbolId};

/// The largest value of a derived size. No tensor of this extent fits an address space.
pub const MOST: i64 = 1 << 48;

/// A symbol whose value follows from scalars, and from symbols before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    /// The symbol.
    pub symbol: SymbolId,
    /// The value, an int32 or int64 of numbers, scalars and symbols before this one.
    pub value: Expr,
    /// Where the value was written.
    pub origin: Origin,
}

/// Why a derived size has no value.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DerivedError {
    /// A scalar, or another size, has no value.
    #[error("the value of a scalar or size is not known")]
    Unknown,
    /// NaN or an infinity is converted to an integer.
    #[error("it converts {} to an integer", float_text(*.0))]
    NotFinite(f64),
    /// A number is converted to an integer type that does not hold it.
    #[error("{} does not fit {dtype}", number_text(*.number))]
    DoesNotFit {
        /// The number.
        number: Number,
        /// The type.
        dtype: DType,
    },
    /// The value is no size.
    #[error("a size is between 0 and 2^48, and this is {0}")]
    NoSize(i128),
}

/// The values of the leaves of an expression.
struct Leaves<'a> {
    symbols: &'a dyn Fn(SymbolId) -> Option<i64>,
    scalars: &'a dyn Fn(ScalarId) -> Option<Number>,
}

impl Derived {
    /// Computes the value, from the values of symbols and scalars as far as they are known. The
    /// numbers must have the types of their scalars.
    pub fn evaluate(
        &self,
        symbols: &dyn Fn(SymbolId) -> Option<i64>,
        scalars: &dyn Fn(ScalarId) -> Option<Number>,
    ) -> Result<i64, DerivedError> {
        let value = Leaves { symbols, scalars }.evaluate(&self.value)?.as_i128();
        let size = i64::try_from(value).ok().filter(|size| (0..=MOST).contains(size));
        size.ok_or(DerivedError::NoSize(value))
    }

    /// The scalars that the value depends on, each once, in the order of the signature.
    pub fn scalars(&self) -> Vec<ScalarId> {
        let mut found = Vec::new();
        add_scalars(&self.value, &mut found);
        found.sort();
        found.dedup();
        found
    }

    /// The names of the scalars that the value depends on.
    pub fn scalar_names<'a>(&self, all: &'a [Scalar]) -> impl Iterator<Item = &'a str> {
        self.scalars().into_iter().filter_map(|id| Some(all.get(id.index())?.name.as_str()))
    }

    /// The symbols that the value depends on.
    pub fn symbols(&self) -> Vec<SymbolId> {
        let mut found = Vec::new();
        self.value.visit_indices(&mut |index| {
            index.visit_atoms(&mut |atom| found.extend(symbol_of(atom)));
        });
        found
    }

    /// The scalars with their values, for messages: `r_sigma = 0.1`.
    pub fn scalars_text(&self, names: &[Scalar], values: &dyn Fn(ScalarId) -> Option<Number>) -> String {
        let known = |id: &ScalarId| {
            let value = values(*id)?;
            Some(format!("{} = {}", names.get(id.index())?.name, number_text(value)))
        };
        self.scalars().iter().filter_map(known).collect::<Vec<_>>().join(", ")
    }
}

fn symbol_of(atom: &Atom) -> Option<SymbolId> {
    match atom {
        Atom::Symbol(symbol) => Some(*symbol),
        _ => None,
    }
}

fn add_scalars(value: &Expr, found: &mut Vec<ScalarId>) {
    if let ExprKind::Scalar(id) = value.kind {
        found.push(id);
    }
    value.operands().iter().for_each(|operand| add_scalars(operand, found));
}

/// A number as messages show it. A float is shown with as few digits as float32 needs.
pub fn number_text(number: Number) -> String {
    match number {
        Number::Int(value) => value.to_string(),
        Number::Float(value) => float_text(value),
    }
}

fn float_text(value: f64) -> String {
    let single = value as f32;
    if f64::from(single) == value { format!("{single}") } else { format!("{value}") }
}

impl Leaves<'_> {
    /// The value of an expression, as the interpreter computes it.
    fn evaluate(&self, expr: &Expr) -> Result<Number, DerivedError> {
        let dtype = expr.dtype;
        Ok(match &expr.kind {
            ExprKind::Literal(number) => *number,
            ExprKind::Index(index) => converted(Number::Int(self.index(index)?.into()), dtype)?,
            ExprKind::Scalar(scalar) => (self.scalars)(*scalar).ok_or(DerivedError::Unknown)?,
            ExprKind::Unary(op, operand) => {
                let operand = self.evaluate(operand)?;
                refuse_wrapping(unary_exactly(*op, operand), dtype)?;
                arithmetic::unary(*op, operand, dtype)
            }
            ExprKind::Binary(op, operands) if op.is_logical() => self.logical(*op, operands, dtype)?,
            ExprKind::Binary(op, operands) => {
                let (left, right) = (self.evaluate(&operands[0])?, self.evaluate(&operands[1])?);
                refuse_wrapping(binary_exactly(*op, left, right), dtype)?;
                arithmetic::binary(*op, left, right, dtype)
            }
            ExprKind::Select(operands) => {
                let [condition, then, otherwise] = operands.as_ref();
                self.evaluate(if self.evaluate(condition)?.is_true() { then } else { otherwise })?
            }
            ExprKind::Call(builtin, arguments) => {
                let arguments = arguments.iter().map(|argument| self.evaluate(argument));
                arithmetic::call(*builtin, &arguments.collect::<Result<Vec<_>, _>>()?, dtype)
            }
            ExprKind::Cast(operand) => converted(self.evaluate(operand)?, dtype)?,
            // No derived size reads a tensor: `verify_form` refuses it.
            ExprKind::Load(_) => return Err(DerivedError::Unknown),
        })
    }

    fn index(&self, index: &IndexExpr) -> Result<i64, DerivedError> {
        let value = index.eval(&mut |atom| symbol_of(atom).and_then(|symbol| (self.symbols)(symbol)));
        value.ok_or(DerivedError::Unknown)
    }

    /// `&&` and `||`, which evaluate the second operand only where the first does not decide.
    fn logical(&self, op: BinaryOp, operands: &[Expr; 2], dtype: DType) -> Result<Number, DerivedError> {
        let left = self.evaluate(&operands[0])?;
        if left.is_true() == (op == BinaryOp::Or) {
            return Ok(left);
        }
        Ok(arithmetic::binary(op, left, self.evaluate(&operands[1])?, dtype))
    }
}

/// Converts a number, unless it would saturate or wrap.
fn converted(number: Number, dtype: DType) -> Result<Number, DerivedError> {
    if let (Some((low, high)), true) = (dtype.integer_bounds(), dtype != DType::Bool) {
        match number {
            Number::Float(value) if !value.is_finite() => return Err(DerivedError::NotFinite(value)),
            // The cast truncates, as the conversion does.
            _ if !(low..=high).contains(&number.as_i128()) => {
                return Err(DerivedError::DoesNotFit { number, dtype });
            }
            _ => {}
        }
    }
    Ok(number.convert(dtype))
}

/// The exact result of an operator on integers that may wrap.
fn unary_exactly(op: UnaryOp, operand: Number) -> Option<i128> {
    match (op, operand) {
        (UnaryOp::Neg, Number::Int(value)) => Some(-value),
        _ => None,
    }
}

/// The exact result of an operator on integers that may wrap. Operators on bits wrap by intention.
fn binary_exactly(op: BinaryOp, left: Number, right: Number) -> Option<i128> {
    let (Number::Int(left), Number::Int(right)) = (left, right) else { return None };
    match op {
        BinaryOp::Add => Some(left + right),
        BinaryOp::Sub => Some(left - right),
        BinaryOp::Mul => Some(left.saturating_mul(right)),
        _ => None,
    }
}

fn refuse_wrapping(exact: Option<i128>, dtype: DType) -> Result<(), DerivedError> {
    match (exact, dtype.integer_bounds()) {
        (Some(value), Some((low, high))) if !(low..=high).contains(&value) => {
            Err(DerivedError::DoesNotFit { number: Number::Int(value), dtype })
        }
        _ => Ok(()),
    }
}

/// A derived size of a program whose sizes are known: the value that the program holds, and the
/// expression that the scalars of a call must give the same value.
#[derive(Clone, Debug)]
pub struct DerivedSize {
    /// The name of the size.
    pub name: String,
    /// The value that the program holds.
    pub value: i64,
    /// The expression as text.
    pub text: String,
    derived: Derived,
    scalars: Vec<Scalar>,
}

/// Why scalars do not belong to a program with derived sizes.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("the program is specialised for `{name}` = {wanted}, but with {scalars} `{text}` {found}")]
pub struct DerivedMismatch {
    /// The name of the size.
    pub name: String,
    /// The value that the program holds.
    pub wanted: i64,
    /// The expression.
    pub text: String,
    /// The scalars with their values.
    pub scalars: String,
    /// The value of the expression with these scalars, `is 12`, or the reason why it has none.
    pub found: String,
}

impl DerivedSize {
    /// Checks that the scalars of a call, in the order of the signature, give the size the value
    /// that the program holds.
    pub fn check(&self, scalars: &[Number]) -> Result<(), DerivedMismatch> {
        let scalar = |id: ScalarId| {
            let declared = self.scalars.get(id.index())?;
            scalars.get(id.index()).map(|value| value.convert(declared.dtype))
        };
        let found = match self.derived.evaluate(&|_| None, &scalar) {
            Ok(value) if value == self.value => return Ok(()),
            Ok(value) => format!("is {value}"),
            Err(error) => format!("has no value: {error}"),
        };
        Err(DerivedMismatch {
            name: self.name.clone(),
            wanted: self.value,
            text: self.text.clone(),
            scalars: self.derived.scalars_text(&self.scalars, &scalar),
            found,
        })
    }
}

impl Program {
    /// The derived sizes of a program whose sizes are known. The list has no size that is not
    /// known.
    pub fn derived_sizes(&self) -> Vec<DerivedSize> {
        let general = self.general.as_deref().unwrap_or(self);
        let size = |(own, written): (&Derived, &Derived)| {
            let symbol = self.symbols.get(own.symbol.index())?;
            Some(DerivedSize {
                name: symbol.name.clone(),
                value: symbol.value?,
                text: print::expr(&written.value, general),
                derived: own.clone(),
                scalars: self.scalars.clone(),
            })
        };
        self.derived.iter().zip(&general.derived).filter_map(size).collect()
    }

    /// Computes the values of all symbols, in their order, from the values of those that are not
    /// derived and from the scalars. `given` returns the value of a symbol that is not derived.
    /// Returns `None` if a value is missing or a derived size has none.
    pub fn derived_values(
        &self,
        given: &dyn Fn(SymbolId) -> Option<i64>,
        scalars: &dyn Fn(&str) -> Option<Number>,
    ) -> Option<Vec<i64>> {
        let general = self.general.as_deref().unwrap_or(self);
        let free = (0..general.symbols.len() as u32).map(SymbolId);
        let mut values: Vec<Option<i64>> =
            free.map(|symbol| given(symbol).filter(|_| !general.is_derived(symbol))).collect();
        let scalar = |id: ScalarId| {
            let declared = general.scalars.get(id.index())?;
            Some(scalars(&declared.name)?.convert(declared.dtype))
        };
        // A derived size depends only on those before it.
        for own in &general.derived {
            let known = own.evaluate(&|symbol| values.get(symbol.index()).copied().flatten(), &scalar);
            let known = known.ok()?;
            values[own.symbol.index()] = Some(known);
        }
        values.into_iter().collect()
    }

    /// Returns true when a symbol is computed from scalars.
    pub fn is_derived(&self, symbol: SymbolId) -> bool {
        self.derived.iter().any(|own| own.symbol == symbol)
    }
}
