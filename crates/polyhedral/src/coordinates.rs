//! Converts expressions of the IR to functions and sets of isl.
//!
//! A vector holds one coordinate for the value of each variable. The conversion is exact for affine
//! expressions with quotients and remainders by positive numbers, `min` and `max`. An expression
//! that depends on data or multiplies variables has no conversion.

use tilewright_ir::ids::{Ids, InProgram};
use tilewright_ir::interval::{self, Interval, Intervals};
use tilewright_ir::{Atom, BinaryOp, DType, Data, Expr, ExprKind, IndexExpr, Term};
use tilewright_isl::{Affine, Context, Map, Set};

/// The variables that the coordinates of a vector stand for.
#[derive(Clone, Debug)]
pub struct Coordinates<I: Ids = InProgram> {
    context: Context,
    /// A coordinate of longer vectors may stand for no variable.
    vars: Vec<Option<I::Var>>,
    /// The least and the greatest value of each variable, where they are known.
    ranges: Vec<Option<(i64, i64)>>,
}

impl<I: Ids> Coordinates<I> {
    /// Vectors without coordinates.
    pub fn new(context: &Context) -> Coordinates<I> {
        Coordinates { context: context.clone(), vars: Vec::new(), ranges: Vec::new() }
    }

    /// The same variables as part of longer vectors, which have `all` coordinates. These variables
    /// start at `offset`.
    pub fn embedded(&self, offset: usize, all: usize) -> Coordinates<I> {
        let mut vars = vec![None; all];
        let mut ranges = vec![None; all];
        vars[offset..offset + self.len()].copy_from_slice(&self.vars);
        ranges[offset..offset + self.len()].copy_from_slice(&self.ranges);
        Coordinates { context: self.context.clone(), vars, ranges }
    }

    /// Adds a coordinate for a variable, with the variable's least and greatest value if they are
    /// known.
    pub fn add(&mut self, var: I::Var, range: Option<(i64, i64)>) {
        self.vars.push(Some(var));
        self.ranges.push(range);
    }

    /// The variables, in the order of their coordinates.
    pub fn vars(&self) -> impl Iterator<Item = I::Var> {
        self.vars.iter().copied().flatten()
    }

    /// The number of coordinates.
    pub fn len(&self) -> usize {
        self.vars.len()
    }

    /// Returns true when there are no coordinates.
    pub fn is_empty(&self) -> bool {
        self.vars.is_empty()
    }

    /// The isl context of the functions and sets.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The coordinate of a variable. If several coordinates have the same variable, the last one
    /// counts.
    pub fn position(&self, var: I::Var) -> Option<usize> {
        self.vars.iter().rposition(|own| *own == Some(var))
    }

    /// A number as a constant function.
    pub fn constant(&self, value: i64) -> Affine {
        Affine::constant(&self.context, self.len(), value)
    }

    /// The value of an expression, or `None` if the expression depends on data or multiplies
    /// variables.
    pub fn affine(&self, expr: &IndexExpr<I>) -> Option<Affine> {
        let start = self.constant(expr.constant_part());
        expr.terms().iter().try_fold(start, |sum, term| Some(sum.add(&self.term(term)?)))
    }

    fn term(&self, term: &Term<I>) -> Option<Affine> {
        let [factor] = term.factors.as_slice() else { return None };
        Some(self.atom(factor)?.scale(term.coefficient))
    }

    fn atom(&self, atom: &Atom<I>) -> Option<Affine> {
        match atom {
            Atom::Var(var) => Some(Affine::variable(&self.context, self.len(), self.position(*var)?)),
            Atom::FloorDiv(pair) => self.quotient(pair, Affine::floor_div),
            Atom::Mod(pair) => self.quotient(pair, Affine::modulo),
            Atom::Min(pair) => Some(self.affine(&pair.0)?.minimum(&self.affine(&pair.1)?)),
            Atom::Max(pair) => Some(self.affine(&pair.0)?.maximum(&self.affine(&pair.1)?)),
            Atom::Symbol(_) | Atom::Extent(..) | Atom::Data(_) | Atom::Overflow => None,
        }
    }

    fn quotient(
        &self,
        pair: &(IndexExpr<I>, IndexExpr<I>),
        operation: fn(&Affine, i64) -> Affine,
    ) -> Option<Affine> {
        let by = pair.1.as_constant().filter(|by| *by > 0)?;
        Some(operation(&self.affine(&pair.0)?, by))
    }

    /// Maps vectors to the elements that subscripts name, in an array of this shape. A subscript
    /// that has no conversion may be any index of its dimension. Also returns whether all
    /// subscripts have one.
    pub fn elements(&self, indices: &[IndexExpr<I>], shape: &[i64]) -> (Map, bool) {
        self.elements_after(&[], indices, shape)
    }

    /// The same map as `elements`, with the values of the functions `before` in front of the
    /// subscripts.
    pub fn elements_after(&self, before: &[Affine], indices: &[IndexExpr<I>], shape: &[i64]) -> (Map, bool) {
        let functions: Vec<Option<Affine>> = before
            .iter()
            .map(|own| Some(own.clone()))
            .chain(indices.iter().map(|index| self.affine(index)))
            .collect();
        if let Some(known) = functions.iter().cloned().collect::<Option<Vec<Affine>>>() {
            return (Map::from_functions(&self.context, self.len(), &known), true);
        }
        let start = Map::from_functions(&self.context, self.len(), before);
        let map = functions[before.len()..].iter().zip(shape).fold(start, |map, (function, extent)| {
            map.flat_range_product(&match function {
                Some(value) => Map::from_functions(&self.context, self.len(), std::slice::from_ref(value)),
                None => Map::from_domain_and_range(
                    &Set::universe(&self.context, self.len()),
                    &interval(&self.context, *extent),
                ),
            })
        });
        (map, false)
    }

    /// The vectors at which all expressions are at least 0. Also returns whether all expressions
    /// have a conversion; one without a conversion counts as true.
    pub fn all_nonnegative(&self, conditions: &[IndexExpr<I>]) -> (Set, bool) {
        let values: Vec<Affine> = conditions.iter().filter_map(|condition| self.affine(condition)).collect();
        (Set::where_nonnegative(&self.context, self.len(), &values), values.len() == conditions.len())
    }

    /// The vectors at which a condition holds. Returns `None` if the condition depends on data, or
    /// if one of its sides may overflow its type.
    pub fn condition(&self, expr: &Expr<I>) -> Option<Set> {
        match &expr.kind {
            ExprKind::Literal(number) => Some(match number.is_true() {
                true => Set::universe(&self.context, self.len()),
                false => Set::empty(&self.context, self.len()),
            }),
            ExprKind::Unary(tilewright_ir::UnaryOp::Not, operand) => {
                self.condition(operand).map(|set| self.complement(&set))
            }
            ExprKind::Binary(BinaryOp::And, sides) => {
                Some(self.condition(&sides[0])?.intersect(&self.condition(&sides[1])?))
            }
            ExprKind::Binary(BinaryOp::Or, sides) => {
                Some(self.condition(&sides[0])?.union(&self.condition(&sides[1])?))
            }
            ExprKind::Binary(op, sides) if op.is_comparison() => {
                self.comparison_set(*op, &self.index_value(&sides[0])?, &self.index_value(&sides[1])?)
            }
            _ => None,
        }
    }

    /// All vectors except those in the set.
    pub fn complement(&self, set: &Set) -> Set {
        Set::universe(&self.context, self.len()).subtract(set)
    }

    fn comparison_set(&self, op: BinaryOp, left: &Affine, right: &Affine) -> Option<Set> {
        let difference = left.sub(right);
        Some(match op {
            BinaryOp::Less => difference.scale(-1).offset(-1).nonnegative_set(),
            BinaryOp::LessEqual => difference.scale(-1).nonnegative_set(),
            BinaryOp::Greater => difference.offset(-1).nonnegative_set(),
            BinaryOp::GreaterEqual => difference.nonnegative_set(),
            BinaryOp::Equal => difference.zero_set(),
            BinaryOp::NotEqual => self.complement(&difference.zero_set()),
            _ => return None,
        })
    }

    /// The exact value of an index or a number in a value expression, if the expression's type can
    /// represent it.
    fn index_value(&self, expr: &Expr<I>) -> Option<Affine> {
        match &expr.kind {
            ExprKind::Literal(number) if !expr.dtype.is_float() => {
                Some(self.constant(i64::try_from(number.as_i128()).ok()?))
            }
            ExprKind::Index(index) if self.fits(index, expr.dtype) => self.affine(index),
            _ => None,
        }
    }

    /// Checks whether a type represents all values of an expression exactly.
    pub fn fits(&self, index: &IndexExpr<I>, dtype: DType) -> bool {
        let Some((low, high)) = dtype.integer_bounds() else { return false };
        self.range(index).is_some_and(|range| range.low >= low && range.high <= high)
    }

    /// The interval of an expression, computed from the intervals of its variables.
    pub fn range(&self, expr: &IndexExpr<I>) -> Option<Interval> {
        interval::interval(expr, self)
    }
}

impl<I: Ids> Intervals<I> for Coordinates<I> {
    fn var(&self, var: I::Var) -> Option<Interval> {
        let (low, high) = self.ranges[self.position(var)?]?;
        Some(Interval { low: low.into(), high: high.into() })
    }

    fn data(&self, _: &Data<I>) -> Option<Interval> {
        None
    }
}

/// `{ [x] : 0 <= x < extent }`.
fn interval(context: &Context, extent: i64) -> Set {
    elements_of(context, &[extent])
}

/// All elements of an array of this shape.
pub fn elements_of(context: &Context, shape: &[i64]) -> Set {
    let both_ends = shape.iter().enumerate().flat_map(|(at, extent)| {
        let x = Affine::variable(context, shape.len(), at);
        [x.scale(-1).offset(extent - 1), x]
    });
    Set::where_nonnegative(context, shape.len(), &both_ends.collect::<Vec<_>>())
}
