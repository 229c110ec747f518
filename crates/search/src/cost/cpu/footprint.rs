//! Computes the part of a buffer that an access touches while some of the loops around it run
//! ([`Region`]), and the cache lines of this part ([`Lines`]).

use tilewright_ir::nest::{Access, Atom, Buffer, IndexExpr, LoopVarId};

use super::instructions::visit_loads;

/// The size of a cache line in bytes.
pub(super) const LINE_BYTES: f64 = 64.0;

/// The range of a subscript while variables run: the distance from its least to its greatest value,
/// and the number of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::cost) struct Reach {
    pub width: f64,
    pub values: f64,
}

impl Reach {
    const FIXED: Reach = Reach { width: 0.0, values: 1.0 };

    /// The reach of a subscript, given the trip count of each variable's loop; 1 for variables that
    /// stay fixed.
    pub fn of(index: &IndexExpr, trips: &dyn Fn(LoopVarId) -> f64) -> Reach {
        let mut sum = Reach::FIXED;
        for term in index.terms() {
            let mut product = Reach { width: term.coefficient.unsigned_abs() as f64, values: 1.0 };
            let (mut moves, mut factor_width) = (false, 1.0);
            for factor in &term.factors {
                let own = Reach::of_atom(factor, trips);
                moves |= own.values > 1.0;
                factor_width *= if term.factors.len() == 1 { own.width } else { own.width.max(1.0) };
                product.values *= own.values;
            }
            product.width *= if moves { factor_width } else { 0.0 };
            sum.width += product.width;
            sum.values *= product.values;
        }
        sum.values = sum.values.min(sum.width + 1.0);
        sum
    }

    fn of_atom(atom: &Atom, trips: &dyn Fn(LoopVarId) -> f64) -> Reach {
        match atom {
            Atom::Var(var) => {
                let trips = trips(*var).max(1.0);
                Reach { width: trips - 1.0, values: trips }
            }
            Atom::FloorDiv(pair) => {
                let (own, by) = (Reach::of(&pair.0, trips), divisor(&pair.1));
                let width = (own.width / by).floor();
                Reach { width, values: own.values.min(width + 1.0) }
            }
            Atom::Mod(pair) => {
                let (own, by) = (Reach::of(&pair.0, trips), divisor(&pair.1));
                Reach { width: own.width.min(by - 1.0), values: own.values.min(by) }
            }
            Atom::Min(pair) | Atom::Max(pair) => {
                let (left, right) = (Reach::of(&pair.0, trips), Reach::of(&pair.1, trips));
                Reach { width: left.width.max(right.width), values: left.values.max(right.values) }
            }
            Atom::Data(data) => {
                let mut values = 1.0;
                visit_loads(&data.value, &mut |access| {
                    access.indices.iter().for_each(|index| values *= Reach::of(index, trips).values);
                });
                Reach { width: if values > 1.0 { f64::INFINITY } else { 0.0 }, values }
            }
            Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => Reach::FIXED,
        }
    }
}

fn divisor(expr: &IndexExpr) -> f64 {
    expr.as_constant().map_or(1.0, |by| by.unsigned_abs().max(1) as f64)
}

/// The largest number of dimensions that are distinguished. The outer dimensions of a tensor with
/// more count as one.
const MAX_DIMS: usize = 6;

/// The part of a region along one dimension.
#[derive(Clone, Copy, Debug, Default)]
struct DimensionRange {
    /// The least and the greatest value of the subscript when the outer loops are at 0.
    from: f64,
    to: f64,
    /// The number of values of the subscript.
    values: f64,
}

/// The part of a buffer that a box of iterations touches.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cost) struct Region {
    /// The dimensions, innermost first.
    dimensions: [DimensionRange; MAX_DIMS],
    count: usize,
}

impl Region {
    /// The region that an access touches, given the trip count of each variable's loop; 1 for
    /// variables that stay fixed.
    pub fn of(access: &Access, trips: &dyn Fn(LoopVarId) -> f64) -> Region {
        let mut region = Region { count: access.indices.len().min(MAX_DIMS), ..Region::default() };
        for (at, index) in access.indices.iter().rev().enumerate() {
            let (from, reach) = (index.constant_part() as f64, Reach::of(index, trips));
            match region.dimensions.get_mut(at) {
                Some(side) => *side = DimensionRange { from, to: from + reach.width, values: reach.values },
                None => region.dimensions[MAX_DIMS - 1].values *= reach.values,
            }
        }
        region
    }

    /// Extends the region to include another region of the same buffer.
    pub fn join(&mut self, other: &Region) {
        for (own, other) in self.dimensions.iter_mut().zip(&other.dimensions).take(self.count) {
            let same = own.from == other.from && own.to == other.to;
            let joined = DimensionRange {
                from: own.from.min(other.from),
                to: own.to.max(other.to),
                values: own.values,
            };
            // Elements between both regions that neither touches do not count.
            let values = if same { own.values.max(other.values) } else { own.values + other.values };
            *own = DimensionRange { values: values.min(joined.to - joined.from + 1.0), ..joined };
        }
    }

    /// The number of touched elements.
    pub fn elements(&self) -> f64 {
        self.dimensions[..self.count].iter().map(|side| side.values.max(1.0)).product()
    }

    /// The cache lines of the region in a buffer.
    pub(super) fn lines(&self, buffer: &Buffer) -> Lines {
        let element = buffer.dtype.bytes() as f64;
        let mut lines = Lines { rows: 1.0, run: element, steps: [(1.0, LINE_BYTES); MAX_DIMS], count: 0 };
        let mut distance = element;
        for (side, extent) in self.dimensions[..self.count].iter().zip(buffer.shape.iter().rev()) {
            let width = (side.to - side.from).min(*extent as f64 - 1.0).max(0.0);
            lines.add_dimension(side.values.min(width + 1.0).max(1.0), width, distance);
            distance *= *extent as f64;
        }
        lines
    }
}

/// Equally sized rows of contiguous bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    rows: f64,
    /// The number of bytes of a row.
    run: f64,
    /// The number of rows and their distance in bytes, for every dimension with several rows.
    steps: [(f64, f64); MAX_DIMS],
    count: usize,
}

impl Lines {
    fn steps(&self) -> &[(f64, f64)] {
        &self.steps[..self.count]
    }

    /// Adds the next dimension, whose neighbours are `distance` bytes apart.
    fn add_dimension(&mut self, values: f64, width: f64, distance: f64) {
        if values <= 1.0 {
            return;
        }
        let apart = distance * (width + 1.0) / values;
        if apart <= self.run.max(LINE_BYTES) && self.count == 0 {
            self.run += width * distance;
        } else {
            self.rows *= values;
            self.steps[self.count] = (values, apart);
            self.count += 1;
        }
    }

    /// The number of bytes of a row.
    pub fn run(&self) -> f64 {
        self.run
    }

    /// The number of bytes of all touched cache lines.
    pub fn bytes(&self) -> f64 {
        let aligned = self.steps().iter().all(|(_, apart)| (apart / LINE_BYTES).fract() == 0.0);
        let lines = if aligned { (self.run / LINE_BYTES).ceil() } else { self.run / LINE_BYTES + 0.8 };
        self.rows * lines.max(1.0) * LINE_BYTES
    }

    /// The factor by which the occupied cache space exceeds the bytes of the lines, because the
    /// lines map to few sets. `period` is the number of bytes after which sets repeat, and `ways`
    /// is the associativity. A few rows never exceed a set.
    pub fn conflict_factor(&self, period: f64, ways: usize) -> f64 {
        let run_lines = (self.run / LINE_BYTES).ceil().max(1.0);
        let many = self.steps().iter().filter(|(rows, _)| *rows > ways as f64 / 2.0);
        let crowding = many.map(|(rows, apart)| {
            let distinct = period / common_divisor(*apart, period).max(LINE_BYTES);
            if *rows <= distinct { 1.0 } else { (period / LINE_BYTES / (distinct * run_lines)).max(1.0) }
        });
        crowding.fold(1.0, f64::max)
    }
}

/// The greatest common divisor of two whole numbers of bytes.
fn common_divisor(left: f64, right: f64) -> f64 {
    let (mut left, mut right) = (left.round().max(1.0) as u64, right.round().max(1.0) as u64);
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left as f64
}
