//! Decides whether a value is computed in words, and how.
//!
//! [`Planner::plans`] returns two plans of an expression: for its low 8 and its low 16 bits. Sums,
//! products and operators on bits need only the low bits of their operands. All other operations
//! need the exact values, so the intervals of their operands must fit the lanes
//! ([`Planner::common_type`]). Each plan counts its instructions, and the cheaper one of bytes and
//! halfwords is taken, with a conversion.

use std::rc::Rc;

use tilewright_ir::interval::{Interval, interval_of_value};
use tilewright_ir::nest::{Access, Expr, ExprKind};
use tilewright_ir::{BinaryOp, Builtin, DType, Number, UnaryOp};

use super::words::Window;
use super::{Lanes, Operation};
use crate::c_family::lanes::VectorLoop;
use crate::c_family::stmt::Emitter;
use crate::idiom::{Idiom, IdiomKind, Limits, halvings, idiom, number};

/// The cost of a load of one lane. A multiprocessor starts four other instructions in its time.
const SINGLE_LOAD: u32 = 4;

/// The largest number of operations in the text of one word. A value whose parts are narrowed and
/// widened again many times doubles its text each time.
const MAX_WRITTEN_OPERATIONS: u64 = 1000;

/// How the words of a value are computed.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) lanes: Lanes,
    pub(super) node: Rc<Node>,
    /// The number of instructions for four lanes.
    cost: u32,
}

/// The last step of a plan. A truth value is a lane of ones or zeros.
#[derive(Debug)]
pub(super) enum Node {
    /// Neighbouring elements of memory.
    Load(Window),
    /// Every second element of memory.
    EverySecond(Window),
    /// The same value in all lanes.
    Same(Expr),
    /// An operator of C on whole words: on bits, or where no lane carries into the next one.
    Plain(BinaryOp, [Plan; 2]),
    /// A product with a number, where no lane carries into the next one.
    Scaled(Plan, u32),
    /// A shift of unsigned numbers by a number, in one of the two directions.
    Shifted(BinaryOp, Plan, u32),
    /// A function of words, for lanes of a type.
    Operation(Operation, DType, Vec<Plan>),
    /// A function of words and of a number that is the same for all lanes.
    ByNumber(Operation, DType, Plan, u32),
    /// Halfwords of bytes of a type.
    Widened(DType, Plan),
    /// The low bytes of halfwords.
    Narrowed(Plan),
    /// One of two values, by a condition that is the same for all lanes.
    Chosen(Expr, [Plan; 2]),
}

impl Plan {
    /// A plan with this last step, which takes `instructions` for a word.
    fn new(lanes: Lanes, instructions: u32, parts: u32, node: Node) -> Plan {
        let words = if lanes == Lanes::Bytes { 1 } else { 2 };
        Plan { lanes, node: Rc::new(node), cost: instructions * words + parts }
    }

    fn plain(op: BinaryOp, parts: [Plan; 2]) -> Plan {
        let cost = parts.iter().map(|part| part.cost).sum();
        Plan::new(parts[0].lanes, 1, cost, Node::Plain(op, parts))
    }

    /// The number of operations in the text of one word. Bytes that are narrowed from halfwords
    /// write their operands twice.
    fn written_operations(&self) -> u64 {
        let of_all = |parts: &[Plan]| parts.iter().map(Plan::written_operations).sum::<u64>();
        1 + match &*self.node {
            Node::Load(_) | Node::EverySecond(_) | Node::Same(_) => 0,
            Node::Plain(_, parts) | Node::Chosen(_, parts) => of_all(parts),
            Node::Operation(_, _, parts) => of_all(parts),
            Node::Scaled(part, _)
            | Node::Shifted(_, part, _)
            | Node::ByNumber(_, _, part, _)
            | Node::Widened(_, part) => part.written_operations(),
            Node::Narrowed(part) => 2 * part.written_operations(),
        }
    }

    /// The loads of a plan, in order.
    pub(super) fn visit_loads<'p>(&'p self, each: &mut dyn FnMut(&'p Window)) {
        match &*self.node {
            Node::Load(window) | Node::EverySecond(window) => each(window),
            Node::Same(_) => {}
            Node::Plain(_, parts) | Node::Chosen(_, parts) => {
                parts.iter().for_each(|part| part.visit_loads(each))
            }
            Node::Operation(_, _, parts) => parts.iter().for_each(|part| part.visit_loads(each)),
            Node::Scaled(part, _)
            | Node::Shifted(_, part, _)
            | Node::ByNumber(_, _, part, _)
            | Node::Widened(_, part)
            | Node::Narrowed(part) => {
                part.visit_loads(each);
            }
        }
    }
}

/// The plans of the low bits of a value, as far as there are any.
#[derive(Clone, Debug, Default)]
pub(super) struct Plans {
    bytes: Option<Plan>,
    halves: Option<Plan>,
}

impl Plans {
    fn by_lanes(plan: impl Fn(Lanes) -> Option<Plan>) -> Plans {
        Plans { bytes: plan(Lanes::Bytes), halves: plan(Lanes::Halves) }
    }

    fn get(&self, lanes: Lanes) -> Option<Plan> {
        match lanes {
            Lanes::Bytes => self.bytes.clone(),
            Lanes::Halves => self.halves.clone(),
        }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_none() && self.halves.is_none()
    }

    /// Adds the conversions between both, where they are cheaper. `bytes` is the type of bytes that
    /// hold the exact value.
    fn with_conversions(self, bytes: Option<DType>) -> Plans {
        let widened = |dtype| {
            let part = self.bytes.clone()?;
            Some(Plan::new(Lanes::Halves, 1, part.cost, Node::Widened(dtype, part)))
        };
        let narrowed = || {
            let part = self.halves.clone()?;
            Some(Plan::new(Lanes::Bytes, 1, part.cost, Node::Narrowed(part)))
        };
        Plans {
            bytes: cheaper(self.bytes.clone(), narrowed()),
            halves: cheaper(self.halves.clone(), bytes.and_then(widened)),
        }
    }
}

fn cheaper(left: Option<Plan>, right: Option<Plan>) -> Option<Plan> {
    left.into_iter().chain(right).min_by_key(|plan| plan.cost)
}

/// Plans the value of a store.
pub(super) struct Planner<'e> {
    emitter: &'e Emitter<'e>,
    vector: VectorLoop,
    target: &'e Access,
    /// The loads that every lane executes.
    certain: Vec<&'e Access>,
}

impl<'e> Planner<'e> {
    pub(super) fn new(
        emitter: &'e Emitter<'e>,
        vector: VectorLoop,
        target: &'e Access,
        value: &'e Expr,
    ) -> Planner<'e> {
        Planner { emitter, vector, target, certain: value.certain_loads() }
    }

    /// The plan of the value as lanes of memory, if it takes fewer instructions than lanes one by
    /// one.
    pub(super) fn plan(&self, value: &Expr, lanes: Lanes) -> Option<Plan> {
        let plan = self.plans(value).get(lanes)?;
        if plan.written_operations() > MAX_WRITTEN_OPERATIONS {
            return None;
        }
        let plan = match value.dtype {
            DType::Bool => Plan::plain(BinaryOp::BitAnd, [plan, self.number(1, lanes)]),
            _ => plan,
        };
        // Three or two instructions join the lanes into words.
        let joined = if lanes == Lanes::Bytes { 3 } else { 2 };
        (plan.cost < 4 * self.instructions_of_a_lane(value) + joined).then_some(plan)
    }

    /// The number of instructions for one lane by itself: one for each operator, and one to extract
    /// each element from its word.
    fn instructions_of_a_lane(&self, expr: &Expr) -> u32 {
        let own = match &expr.kind {
            _ if !expr.mentions(self.vector.lane) => return 0,
            ExprKind::Load(access) if self.is_loaded_alone(access) => SINGLE_LOAD,
            ExprKind::Cast(_) | ExprKind::Literal(_) => 0,
            // A quotient of a signed number is corrected where it is rounded toward 0.
            ExprKind::Binary(BinaryOp::Div | BinaryOp::Mod, _) if expr.dtype.is_signed_integer() => 8,
            ExprKind::Binary(BinaryOp::Div, _) if halvings(expr).is_none() => 3,
            _ => 1,
        };
        let operands = expr.operands().iter().map(|operand| self.instructions_of_a_lane(operand));
        own + operands.sum::<u32>()
    }

    /// Whether the lanes load their elements one by one where they are not loaded as words.
    fn is_loaded_alone(&self, access: &Access) -> bool {
        self.emitter.window(access, self.vector).is_some_and(|window| !window.is_aligned())
    }

    /// The plans of an integer or truth value.
    fn plans(&self, expr: &Expr) -> Plans {
        if !expr.dtype.is_integer() && expr.dtype != DType::Bool {
            return Plans::default();
        }
        if !expr.mentions(self.vector.lane) {
            return self.same(expr);
        }
        let recognised = idiom(expr, &self.emitter.ranges).map(|idiom| self.idiom(expr, &idiom));
        let own = recognised.filter(|plans| !plans.is_empty()).unwrap_or_else(|| self.by_kind(expr));
        // Lanes that do not fill words of bytes stay halfwords.
        if self.vector.lanes % Lanes::Bytes.per_word() != 0 {
            return Plans { bytes: None, ..own };
        }
        own.with_conversions(match expr.dtype {
            DType::Bool => Some(DType::Int8),
            _ => self.common_type(&[expr], Lanes::Bytes),
        })
    }

    fn by_kind(&self, expr: &Expr) -> Plans {
        match &expr.kind {
            ExprKind::Load(access) => self.load(access, expr.dtype),
            ExprKind::Cast(operand) => self.cast(operand, expr),
            ExprKind::Unary(op, operand) => self.unary(*op, operand, expr),
            ExprKind::Binary(op, operands) => self.binary(*op, operands, expr),
            ExprKind::Select(parts) => self.select(parts),
            ExprKind::Call(Builtin::Abs, arguments) => self.abs(&arguments[0], expr),
            _ => Plans::default(),
        }
    }

    // Values that are the same for all lanes, and elements of memory.

    fn same(&self, expr: &Expr) -> Plans {
        let mut is_safe = !expr.any_index(&mut |index| index.has_data());
        expr.visit_loads(&mut |load| is_safe &= self.may_load(load));
        let instructions = u32::from(number(expr).is_none());
        let plan = |lanes| Plan::new(lanes, instructions, 0, Node::Same(expr.clone()));
        if is_safe { Plans::by_lanes(|lanes| Some(plan(lanes))) } else { Plans::default() }
    }

    fn number(&self, value: i128, lanes: Lanes) -> Plan {
        Plan::new(lanes, 0, 0, Node::Same(Expr::literal(DType::Int32, Number::Int(value))))
    }

    /// Whether a load may run before its statement: every lane executes it, or the element is
    /// always inside its buffer; and no other lane stores the element.
    fn may_load(&self, load: &Access) -> bool {
        let is_safe = self.certain.contains(&load) || self.is_inside(load);
        is_safe && (load.tensor != self.target.tensor || load == self.target)
    }

    /// Whether the subscripts are inside the buffer in all iterations of the loops, under any
    /// condition.
    fn is_inside(&self, load: &Access) -> bool {
        let shape = &self.emitter.unit.nest.buffer(load.tensor).shape;
        load.indices.iter().zip(shape).all(|(index, extent)| {
            let Interval { low, high } = self.emitter.ranges.interval(index);
            !index.has_data() && low >= 0 && high < i128::from(*extent)
        })
    }

    fn load(&self, access: &Access, dtype: DType) -> Plans {
        let window = self.may_load(access).then(|| self.emitter.window(access, self.vector)).flatten();
        let Some(window) = window else { return Plans::default() };
        let lanes = window.lanes;
        let joins = u32::from(window.joined_shift() != 0);
        let load = match window.step {
            1 => Plan::new(lanes, joins, 0, Node::Load(window)),
            _ => Plan::new(lanes, 2 * joins + 1, 0, Node::EverySecond(window)),
        };
        let plan = match dtype {
            // Any non-zero byte is a true `bool`.
            DType::Bool => {
                let zero = self.number(0, lanes);
                let differs = Operation::Compare(BinaryOp::NotEqual);
                self.operation(differs, DType::UInt8, vec![load, zero])
            }
            _ => load,
        };
        Plans::by_lanes(|own| (own == lanes).then(|| plan.clone()))
    }

    // Intervals.

    fn interval(&self, expr: &Expr) -> Option<Interval> {
        interval_of_value(expr, &self.emitter.ranges)
    }

    /// The type of lanes that holds the exact values of all expressions, unsigned if possible.
    fn common_type(&self, exprs: &[&Expr], lanes: Lanes) -> Option<DType> {
        let holds = |dtype: DType, expr: &Expr| {
            expr.dtype != DType::Bool
                && self.interval(expr).is_some_and(|interval| is_within(interval, dtype))
        };
        let types = [lanes.unsigned(), lanes.signed()];
        types.into_iter().find(|dtype| exprs.iter().all(|expr| holds(*dtype, expr)))
    }

    /// Whether the low bits of an exact result are those of the value in the type of `expr`: lanes
    /// are not wider than the type, or the result does not wrap.
    fn is_low_part(&self, result: Option<Interval>, expr: &Expr, lanes: Lanes) -> bool {
        expr.dtype.bits() >= lanes.bits() || result.is_some_and(|result| is_within(result, expr.dtype))
    }

    fn operation(&self, operation: Operation, dtype: DType, parts: Vec<Plan>) -> Plan {
        let instructions = operation.cost(dtype, self.emitter.unit.has_packed_halves);
        let cost = parts.iter().map(|part| part.cost).sum();
        Plan::new(parts[0].lanes, instructions, cost, Node::Operation(operation, dtype, parts))
    }

    /// An operation on the exact values of operands. `operation` chooses one for a type of lanes.
    fn exact_operation(
        &self,
        operands: &[&Expr],
        operation: impl Fn(DType, Lanes) -> Option<Operation>,
    ) -> Plans {
        let chosen = [Lanes::Bytes, Lanes::Halves].map(|lanes| {
            let dtype = self.common_type(operands, lanes)?;
            Some((operation(dtype, lanes)?, dtype))
        });
        if chosen == [None, None] {
            return Plans::default();
        }
        let parts: Vec<Plans> = operands.iter().map(|operand| self.plans(operand)).collect();
        Plans::by_lanes(|lanes| {
            let (operation, dtype) = chosen[lanes as usize]?;
            let parts = parts.iter().map(|part| part.get(lanes)).collect::<Option<Vec<_>>>()?;
            Some(self.operation(operation, dtype, parts))
        })
    }

    // Operators.

    fn cast(&self, operand: &Expr, expr: &Expr) -> Plans {
        let plans = self.plans(operand);
        match (operand.dtype, expr.dtype) {
            (DType::Bool, DType::Bool) => plans,
            (DType::Bool, _) => Plans::by_lanes(|lanes| {
                Some(Plan::plain(BinaryOp::BitAnd, [plans.get(lanes)?, self.number(1, lanes)]))
            }),
            (_, DType::Bool) => {
                let zero = Expr::literal(operand.dtype, Number::Int(0));
                let differs = Operation::Compare(BinaryOp::NotEqual);
                self.exact_operation(&[operand, &zero], |_, _| Some(differs))
            }
            _ => {
                let value = self.interval(operand);
                Plans::by_lanes(|lanes| plans.get(lanes).filter(|_| self.is_low_part(value, expr, lanes)))
            }
        }
    }

    fn unary(&self, op: UnaryOp, operand: &Expr, expr: &Expr) -> Plans {
        let plans = self.plans(operand);
        Plans::by_lanes(|lanes| {
            let part = plans.get(lanes)?;
            match op {
                UnaryOp::Not => Some(Plan::plain(BinaryOp::BitXor, [part, self.number(-1, lanes)])),
                UnaryOp::Complement => {
                    let complement = Plan::plain(BinaryOp::BitXor, [part, self.number(-1, lanes)]);
                    // The complement of an unsigned byte has no bits above the byte.
                    self.is_low_part(None, expr, lanes).then_some(complement)
                }
                UnaryOp::Neg => {
                    let result = self.interval(operand).map(Interval::negated);
                    let negated =
                        self.operation(Operation::Sub, lanes.unsigned(), vec![self.number(0, lanes), part]);
                    self.is_low_part(result, expr, lanes).then_some(negated)
                }
            }
        })
    }

    fn binary(&self, op: BinaryOp, operands: &[Expr; 2], expr: &Expr) -> Plans {
        let [left, right] = operands;
        match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => self.sum_or_product(op, operands, expr),
            BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => self.plain(op, operands),
            BinaryOp::And => self.plain(BinaryOp::BitAnd, operands),
            BinaryOp::Or => self.plain(BinaryOp::BitOr, operands),
            BinaryOp::NotEqual if left.dtype == DType::Bool => self.plain(BinaryOp::BitXor, operands),
            BinaryOp::Min | BinaryOp::Max if expr.dtype == DType::Bool => Plans::default(),
            BinaryOp::Min => self.exact_operation(&[left, right], |_, _| Some(Operation::Min)),
            BinaryOp::Max => self.exact_operation(&[left, right], |_, _| Some(Operation::Max)),
            BinaryOp::ShiftLeft => self.shift_left(left, right, expr),
            BinaryOp::Mod => self.remainder(left, right),
            BinaryOp::Div | BinaryOp::ShiftRight => match halvings(expr) {
                Some((value, count)) => self.shift_right(value, count),
                None if op == BinaryOp::Div => self.quotient(left, right),
                None => Plans::default(),
            },
            _ if op.is_comparison() => {
                self.exact_operation(&[left, right], |_, _| Some(Operation::Compare(op)))
            }
            _ => Plans::default(),
        }
    }

    /// An operator on bits, of numbers or of truth values.
    fn plain(&self, op: BinaryOp, operands: &[Expr; 2]) -> Plans {
        let [left, right] = operands.each_ref().map(|operand| self.plans(operand));
        Plans::by_lanes(|lanes| Some(Plan::plain(op, [left.get(lanes)?, right.get(lanes)?])))
    }

    /// A sum, difference or product. Where no lane exceeds its bits or goes below 0, the operator
    /// of C on the whole word computes all lanes.
    fn sum_or_product(&self, op: BinaryOp, operands: &[Expr; 2], expr: &Expr) -> Plans {
        let [left, right] = operands.each_ref().map(|operand| self.plans(operand));
        let intervals = operands.each_ref().map(|operand| self.interval(operand));
        let result = match (op, intervals) {
            (BinaryOp::Add, [Some(left), Some(right)]) => left.plus(right),
            (BinaryOp::Sub, [Some(left), Some(right)]) => left.plus(right.negated()),
            (_, [Some(left), Some(right)]) => left.times(right),
            _ => None,
        };
        Plans::by_lanes(|lanes| {
            let (left, right) = (left.get(lanes)?, right.get(lanes)?);
            if !self.is_low_part(result, expr, lanes) {
                return None;
            }
            let unsigned = lanes.unsigned();
            let carries = ![intervals[0], intervals[1], result]
                .iter()
                .all(|interval| interval.is_some_and(|interval| is_within(interval, unsigned)));
            let factor = operands.each_ref().map(number);
            match (op, factor) {
                (BinaryOp::Add | BinaryOp::Sub, _) if !carries => Some(Plan::plain(op, [left, right])),
                (BinaryOp::Add, _) => Some(self.operation(Operation::Add, unsigned, vec![left, right])),
                (BinaryOp::Sub, _) => Some(self.operation(Operation::Sub, unsigned, vec![left, right])),
                (_, [None, Some(by)]) if !carries => Some(self.scaled(left, by)),
                (_, [Some(by), None]) if !carries => Some(self.scaled(right, by)),
                _ if lanes == Lanes::Bytes => None,
                _ => Some(self.operation(Operation::Mul, unsigned, vec![left, right])),
            }
        })
    }

    fn scaled(&self, part: Plan, by: i128) -> Plan {
        Plan::new(part.lanes, 1, part.cost, Node::Scaled(part, by as u32))
    }

    fn shift_left(&self, value: &Expr, count: &Expr, expr: &Expr) -> Plans {
        let plans = self.plans(value);
        Plans::by_lanes(|lanes| {
            let count = number(count).filter(|count| (0..i128::from(lanes.bits())).contains(count))?;
            let factor = Interval { low: 1 << count, high: 1 << count };
            let result = self.interval(value).and_then(|value| value.times(factor));
            let part = plans.get(lanes).filter(|_| self.is_low_part(result, expr, lanes))?;
            let cost = part.cost;
            Some(Plan::new(lanes, 2, cost, Node::Shifted(BinaryOp::ShiftLeft, part, count as u32)))
        })
    }

    /// A shift of exact values to lower places. It is the quotient by a power of 2, rounded toward
    /// minus infinity.
    fn shift_right(&self, value: &Expr, count: u32) -> Plans {
        let plans = self.plans(value);
        Plans::by_lanes(|lanes| {
            let dtype = self.common_type(&[value], lanes)?;
            let part = plans.get(lanes).filter(|_| count < lanes.bits())?;
            let cost = part.cost;
            Some(match dtype.is_signed_integer() {
                false => Plan::new(lanes, 2, cost, Node::Shifted(BinaryOp::ShiftRight, part, count)),
                true => self.by_number(Operation::ShiftRight, dtype, part, count),
            })
        })
    }

    fn by_number(&self, operation: Operation, dtype: DType, part: Plan, number: u32) -> Plan {
        let instructions = operation.cost(dtype, self.emitter.unit.has_packed_halves);
        let (lanes, cost) = (part.lanes, part.cost);
        Plan::new(lanes, instructions, cost, Node::ByNumber(operation, dtype, part, number))
    }

    /// A quotient by any number, as a product whose high half is the quotient of every number in
    /// the interval.
    fn quotient(&self, value: &Expr, divisor: &Expr) -> Plans {
        let plan = || {
            let part = self.plans(value).get(Lanes::Halves)?;
            let dtype =
                self.common_type(&[value], Lanes::Halves).filter(|dtype| dtype.is_unsigned_integer())?;
            let divisor =
                number(divisor).filter(|divisor| (2..=i128::from(u16::MAX)).contains(divisor))? as u32;
            let most = self.interval(value)?.high as u32;
            let parts = (1u32 << 16).div_ceil(divisor);
            let is_exact = (0..=most).all(|number| (number * parts) >> 16 == number / divisor);
            is_exact.then(|| self.by_number(Operation::Quotient, dtype, part, parts))
        };
        Plans { bytes: None, halves: plan() }
    }

    /// A remainder by a power of 2, which is the low bits of any number.
    fn remainder(&self, value: &Expr, by: &Expr) -> Plans {
        let mask = number(by).filter(|by| *by > 0 && by.count_ones() == 1).map(|by| by - 1);
        let plans = self.plans(value);
        Plans::by_lanes(|lanes| {
            Some(Plan::plain(BinaryOp::BitAnd, [plans.get(lanes)?, self.number(mask?, lanes)]))
        })
    }

    fn select(&self, parts: &[Expr; 3]) -> Plans {
        let condition = &parts[0];
        let is_same = !condition.mentions(self.vector.lane);
        let [mask, then, otherwise] = parts.each_ref().map(|part| self.plans(part));
        Plans::by_lanes(|lanes| {
            let (mask, then, otherwise) = (mask.get(lanes)?, then.get(lanes)?, otherwise.get(lanes)?);
            Some(match is_same {
                true => {
                    let cost = then.cost + otherwise.cost;
                    Plan::new(lanes, 1, cost, Node::Chosen(condition.clone(), [then, otherwise]))
                }
                false => self.operation(Operation::Select, DType::UInt32, vec![mask, then, otherwise]),
            })
        })
    }

    fn abs(&self, operand: &Expr, expr: &Expr) -> Plans {
        let (plans, interval) = (self.plans(operand), self.interval(operand));
        let result = interval.map(|interval| Interval { low: 0, high: interval.greatest_magnitude() });
        Plans::by_lanes(|lanes| {
            let (part, dtype) = (plans.get(lanes)?, self.common_type(&[operand], lanes)?);
            match dtype.is_unsigned_integer() {
                true => Some(part),
                false if !self.is_low_part(result, expr, lanes) => None,
                false => Some(self.operation(Operation::Abs, dtype, vec![part])),
            }
        })
    }

    fn idiom(&self, expr: &Expr, idiom: &Idiom<'_>) -> Plans {
        let [left, right] = idiom.operands.map(|operand| self.interval(operand));
        let difference = left.zip(right).and_then(|(left, right)| left.plus(right.negated()));
        let distance =
            difference.map(|difference| Interval { low: 0, high: difference.greatest_magnitude() });
        self.exact_operation(&idiom.operands, |dtype, lanes| match idiom.kind {
            IdiomKind::AverageDown => Some(Operation::AverageDown),
            IdiomKind::AverageUp => Some(Operation::AverageUp),
            IdiomKind::Distance => self.is_low_part(distance, expr, lanes).then_some(Operation::Distance),
            IdiomKind::LimitedSum(limits) => {
                is_saturation(limits, dtype, BinaryOp::Add).then_some(Operation::SaturatedSum)
            }
            IdiomKind::LimitedDifference(limits) => {
                is_saturation(limits, dtype, BinaryOp::Sub).then_some(Operation::SaturatedDifference)
            }
        })
    }
}

/// Whether limits of a sum or difference are those of the type of its operands. A sum of unsigned
/// numbers needs no lower limit, and a difference no upper one.
fn is_saturation(limits: Limits, dtype: DType, op: BinaryOp) -> bool {
    let Some((low, high)) = dtype.integer_bounds() else { return false };
    let is_unsigned = dtype.is_unsigned_integer();
    let is_low = limits.low == Some(low)
        || is_unsigned && op == BinaryOp::Add && limits.low.is_none_or(|limit| limit <= low);
    let is_high = limits.high == Some(high)
        || is_unsigned && op == BinaryOp::Sub && limits.high.is_none_or(|limit| limit >= high);
    is_low && is_high
}

fn is_within(interval: Interval, dtype: DType) -> bool {
    dtype.integer_bounds().is_some_and(|(low, high)| low <= interval.low && interval.high <= high)
}
