//! Tests how the lanes of a vector read memory: at constant distances, from look-up tables, in both
//! branches of a choice. The inputs end at inaccessible memory.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod harness;

use harness::fenced::Fenced;
use harness::*;
use tilewright_ir::nest::{BufferId, Expr, ExprKind, IndexExpr, LoopKind, Stmt};
use tilewright_ir::{BinaryOp, DType, Number, Tensor, arithmetic};
use tilewright_target::VectorInstructions;

const NARROW: [DType; 4] = [DType::UInt8, DType::Int16, DType::BFloat16, DType::Int64];

/// The lanes that run: all, a number of them, or those up to a limit that is known only at run
/// time.
#[derive(Clone, Copy, Debug)]
enum Lanes {
    All,
    First(i64),
    Before(i64),
}

/// A vector loop over `lanes` in an outer loop of two iterations, whose lanes run as `mask` says.
/// Returns the statement and, for each of the `2 * lanes` results, whether it is computed.
fn masked_loop(
    b: &mut Builder,
    lanes: i64,
    mask: Lanes,
    body: &dyn Fn(IndexExpr) -> Stmt,
) -> (Stmt, Vec<bool>) {
    let (outer, lane) = (b.var("outer"), b.var("lane"));
    let at = v(outer).scale(lanes).add(&v(lane));
    let inner = body(at.clone());
    let (inner, runs): (Stmt, Box<dyn Fn(i64) -> bool>) = match mask {
        Lanes::All => (inner, Box::new(|_| true)),
        Lanes::First(count) => {
            (when(&[c(count - 1).sub(&v(lane))], vec![inner], vec![]), Box::new(move |at| at % lanes < count))
        }
        Lanes::Before(end) => {
            (when(&[c(end - 1).sub(&at)], vec![inner], vec![]), Box::new(move |at| at < end))
        }
    };
    let inner = each(lane, lanes, LoopKind::Vector, vec![inner]);
    (each(outer, 2, LoopKind::Serial, vec![inner]), (0..2 * lanes).map(runs).collect())
}

fn zeros(dtype: DType, count: i64) -> Tensor {
    Tensor::zeros(dtype, &[count as usize]).unwrap()
}

/// A tensor of different values.
fn values(dtype: DType, count: i64) -> Tensor {
    let mut tensor = zeros(dtype, count);
    for at in 0..count {
        tensor.set(at as usize, Number::Int((at * 37 % 251) as i128).convert(dtype));
    }
    tensor
}

/// Runs a kernel of one fenced input, at both ends, and further arguments before the result.
fn check(kernel: &Compiled, input: &Tensor, others: &mut [Vec<u8>], wanted: &Tensor, what: &str) {
    let mut fenced = Fenced::new(input.bytes().len());
    for at_the_end in [false, true] {
        let memory = if at_the_end { fenced.at_the_end() } else { fenced.at_the_start() };
        memory.copy_from_slice(input.bytes());
        let mut out = vec![0u8; wanted.bytes().len()];
        let mut arguments: Vec<&mut [u8]> = vec![memory];
        arguments.extend(others.iter_mut().map(Vec::as_mut_slice));
        arguments.push(&mut out);
        assert_eq!(kernel.run(&mut arguments), 0, "{what}");
        assert_eq!(out, wanted.bytes(), "{what}");
    }
}

/// out(i) = in(pattern(i)), where some lanes run.
#[test]
fn elements_at_constant_distances() {
    type Pattern = (&'static str, fn(IndexExpr) -> IndexExpr, fn(i64) -> i64);
    let patterns: [Pattern; 8] = [
        ("every second", |at| at.scale(2).offset(1), |at| 2 * at + 1),
        ("every third", |at| at.scale(3), |at| 3 * at),
        ("every seventh", |at| at.scale(7), |at| 7 * at),
        ("each twice", |at| at.floor_div(&c(2)), |at| at / 2),
        ("each twice, from the middle", |at| at.offset(1).floor_div(&c(2)), |at| (at + 1) / 2),
        ("each five times", |at| at.floor_div(&c(5)), |at| at / 5),
        ("pairs apart", |at| at.floor_div(&c(2)).scale(3).add(&at.modulo(&c(2))), |at| at / 2 * 3 + at % 2),
        ("one of two", |at| at.modulo(&c(2)), |at| at % 2),
    ];
    for vectors in runnable() {
        for dtype in NARROW {
            for lanes in [2, 3, 64] {
                for (name, index, position) in patterns {
                    let count = 2 * lanes;
                    for mask in
                        [Lanes::All, Lanes::First(1), Lanes::First(lanes - 1), Lanes::Before(lanes + 1)]
                    {
                        let mut b = Builder::new();
                        let last = match mask {
                            Lanes::All => count - 1,
                            Lanes::First(first) => lanes + first - 1,
                            Lanes::Before(end) => end - 1,
                        };
                        let size = (0..=last).map(position).max().unwrap() + 1;
                        let (input, out) = (b.argument(dtype, &[size]), b.argument(dtype, &[count]));
                        let load =
                            |at: IndexExpr| Expr { dtype, kind: ExprKind::Load(access(input, &[index(at)])) };
                        let body = |at: IndexExpr| {
                            let value = load(at.clone());
                            set(out, &[at], value.cast(dtype.compute_type()))
                        };
                        let (body, runs) = masked_loop(&mut b, lanes, mask, &body);
                        let kernel = b.compile(vectors, vec![body]);
                        let input = values(dtype, size);
                        let mut wanted = zeros(dtype, count);
                        for at in (0..count).filter(|at| runs[*at as usize]) {
                            wanted.set(at as usize, input.get(position(at) as usize));
                        }
                        let what = format!("{vectors:?} {dtype} {lanes} lanes, {name}, {mask:?}");
                        check(&kernel, &input, &mut [], &wanted, &what);
                    }
                }
            }
        }
    }
}

/// out(i * step) = in(i), where some lanes run. All other elements keep their values.
#[test]
fn stores_at_a_stride() {
    for vectors in runnable() {
        for dtype in NARROW {
            for (lanes, step) in [(2, 2), (3, 2), (16, 2), (16, 3), (16, -2), (16, 9), (64, 4)] {
                for mask in [Lanes::All, Lanes::First(1), Lanes::First(lanes - 1), Lanes::Before(lanes + 1)] {
                    check_strided_store(vectors, dtype, lanes, step, mask);
                }
            }
        }
    }
}

fn check_strided_store(vectors: VectorInstructions, dtype: DType, lanes: i64, step: i64, mask: Lanes) {
    let count = 2 * lanes;
    let size = (count - 1) * step.abs() + 1;
    let position = |at: i64| if step > 0 { at * step } else { size - 1 + at * step };
    let mut b = Builder::new();
    let (out, input) = (b.argument(dtype, &[size]), b.argument(dtype, &[count]));
    let body = |at: IndexExpr| {
        let place = at.scale(step).offset(if step > 0 { 0 } else { size - 1 });
        let value = Expr { dtype, kind: ExprKind::Load(access(input, &[at])) };
        set(out, &[place], value.cast(dtype.compute_type()))
    };
    let (body, runs) = masked_loop(&mut b, lanes, mask, &body);
    let kernel = b.compile(vectors, vec![body]);
    let (before, input) = (values(dtype, size + 1), values(dtype, count));
    let mut wanted = zeros(dtype, size);
    for at in 0..size {
        wanted.set(at as usize, before.get(at as usize + 1));
    }
    let start = wanted.bytes().to_vec();
    for at in (0..count).filter(|at| runs[*at as usize]) {
        wanted.set(position(at) as usize, input.get(at as usize));
    }
    let mut fenced = Fenced::new(start.len());
    for at_the_end in [false, true] {
        let memory = if at_the_end { fenced.at_the_end() } else { fenced.at_the_start() };
        memory.copy_from_slice(&start);
        let mut input = input.bytes().to_vec();
        assert_eq!(kernel.run(&mut [memory, &mut input]), 0);
        let memory = if at_the_end { fenced.at_the_end() } else { fenced.at_the_start() };
        assert_eq!(memory, wanted.bytes(), "{vectors:?} {dtype} {lanes} lanes, step {step}, {mask:?}");
    }
}

/// out(i) = table(row, places(i)): the elements of a table that data chooses.
#[test]
fn elements_of_a_table() {
    for vectors in runnable() {
        for dtype in NARROW {
            for (places_type, size) in [(DType::UInt8, 3), (DType::UInt16, 300), (DType::Int32, 70_001)] {
                for lanes in [3, 64] {
                    for mask in [Lanes::All, Lanes::First(lanes - 1), Lanes::Before(lanes + 1)] {
                        check_table(vectors, dtype, places_type, size, lanes, mask);
                    }
                }
            }
        }
    }
}

fn check_table(
    vectors: VectorInstructions,
    dtype: DType,
    places_type: DType,
    size: i64,
    lanes: i64,
    mask: Lanes,
) {
    const ROW: i64 = 1;
    let count = 2 * lanes;
    let mut b = Builder::new();
    let table = b.argument(dtype, &[2, size]);
    let (places, out) = (b.argument(places_type, &[count]), b.argument(dtype, &[count]));
    let load =
        |tensor, indices: &[IndexExpr], dtype| Expr { dtype, kind: ExprKind::Load(access(tensor, indices)) };
    let body = |at: IndexExpr| {
        let place = data(load(places, std::slice::from_ref(&at), places_type));
        set(out, &[at], load(table, &[c(ROW), place], dtype).cast(dtype.compute_type()))
    };
    let (body, runs) = masked_loop(&mut b, lanes, mask, &body);
    let kernel = b.compile(vectors, vec![body]);
    let input = values(dtype, 2 * size);
    let mut chosen = zeros(places_type, count);
    let mut wanted = zeros(dtype, count);
    for at in 0..count {
        // Both ends of the table, and a place outside of it where no lane runs.
        let place = if at % 3 == 0 { size - 1 } else { at * 7919 % size };
        let outside = Number::Int(-1).convert(places_type);
        let runs = runs[at as usize];
        chosen.set(at as usize, if runs { Number::Int(place.into()) } else { outside });
        if runs {
            wanted.set(at as usize, input.get((ROW * size + place) as usize));
        }
    }
    let what = format!("{vectors:?} {dtype}, {size} places of {places_type}, {lanes} lanes, {mask:?}");
    check(&kernel, &input, &mut [chosen.bytes().to_vec()], &wanted, &what);
}

/// out(i) = table(p, 0) + 2 * table(p, 1) + 3 * table(p + 1, 0) + …, for p = places(i): neighbours
/// that data chooses. Each of the reads comes in several orders, with gaps between them.
#[test]
fn neighbours_that_data_chooses() {
    let sets: [&[(i64, i64)]; 6] = [
        &[(0, 0), (0, 1), (1, 0), (1, 1)],
        &[(1, 1), (0, 1), (1, 0), (0, 0)],
        &[(0, 1), (1, 0), (2, 0)],
        &[(0, 0), (1, 0), (2, 0)],
        &[(0, 0), (0, 0), (0, 1), (0, 1), (2, 1)],
        &[(-1, 1), (0, 0), (0, 1), (1, 0), (1, 1), (2, 0)],
    ];
    for vectors in runnable() {
        for dtype in [DType::UInt8, DType::Int16, DType::Float32, DType::Int64] {
            for lanes in [2, 3, 4, 16] {
                let masks = [Lanes::All, Lanes::First(lanes - 1), Lanes::Before(lanes + 1)];
                for (reads, mask) in sets.into_iter().zip(masks.into_iter().cycle()) {
                    check_neighbours(vectors, dtype, reads, lanes, mask, 9, 0);
                }
            }
            // A lane outside of the table makes the call fail, and reads nothing beyond the table.
            for rows in [1, 2] {
                check_neighbours(vectors, dtype, sets[0], 16, Lanes::All, rows, 1);
                check_neighbours(vectors, dtype, sets[3], 16, Lanes::Before(17), rows, 1);
            }
        }
    }
}

/// An element of a buffer.
fn element_of(buffer: BufferId, indices: &[IndexExpr], dtype: DType) -> Expr {
    Expr { dtype, kind: ExprKind::Load(access(buffer, indices)) }
}

/// Places are in the rows that keep all reads inside a table of `rows` rows, or `excess` rows
/// beyond them.
fn check_neighbours(
    vectors: VectorInstructions,
    dtype: DType,
    reads: &[(i64, i64)],
    lanes: i64,
    mask: Lanes,
    rows: i64,
    excess: i64,
) {
    const COLUMNS: i64 = 2;
    let count = 2 * lanes;
    let mut b = Builder::new();
    let table = b.argument(dtype, &[rows, COLUMNS]);
    let (places, out) = (b.argument(DType::Int32, &[count]), b.argument(DType::Int64, &[count]));
    let body = |at: IndexExpr| {
        let place = element_of(places, std::slice::from_ref(&at), DType::Int32);
        let term = |number: usize, (row, column): (i64, i64)| {
            let element = element_of(table, &[data(place.clone()).offset(row), c(column)], dtype);
            let factor = Expr::literal(DType::Int64, Number::Int(number as i128 + 1));
            binary(BinaryOp::Mul, element.cast(DType::Int64), factor)
        };
        let terms = reads.iter().enumerate().map(|(number, read)| term(number, *read));
        let sum = terms.reduce(|left, right| binary(BinaryOp::Add, left, right)).unwrap();
        set(out, &[at], sum)
    };
    let (body, runs) = masked_loop(&mut b, lanes, mask, &body);
    let kernel = b.compile(vectors, vec![body]);
    let input = values(dtype, rows * COLUMNS);
    let (least, most) = (
        -reads.iter().map(|read| read.0).min().unwrap(),
        rows - 1 - reads.iter().map(|read| read.0).max().unwrap(),
    );
    let mut chosen = zeros(DType::Int32, count);
    let mut wanted = zeros(DType::Int64, count);
    for at in (0..count).filter(|at| runs[*at as usize]) {
        let place = if excess > 0 { most + excess } else { least + at * 7 % (most - least + 1) };
        chosen.set(at as usize, Number::Int(place.into()));
        let element = |(row, column): (i64, i64)| input.get(((place + row) * COLUMNS + column) as usize);
        let number = |read| element(read).convert(DType::Int64).as_i128();
        if excess == 0 {
            let sum = reads.iter().zip(1..).map(|(read, factor)| number(*read) * factor).sum();
            wanted.set(at as usize, Number::Int(sum));
        }
    }
    let what = format!("{vectors:?} {dtype}, {rows} rows, {lanes} lanes, {mask:?}, {reads:?}");
    if excess == 0 {
        check(&kernel, &input, &mut [chosen.bytes().to_vec()], &wanted, &what);
        return;
    }
    let mut fenced = Fenced::new(input.bytes().len());
    for at_the_end in [false, true] {
        let memory = if at_the_end { fenced.at_the_end() } else { fenced.at_the_start() };
        memory.copy_from_slice(input.bytes());
        let mut out = vec![0u8; wanted.bytes().len()];
        let status = kernel.run(&mut [memory, &mut chosen.bytes().to_vec(), &mut out]);
        assert_ne!(status, 0, "{what}");
    }
}

/// Checks are made only where the data can be outside.
#[test]
fn data_that_stays_inside_is_not_checked() {
    let place = |b: &Builder, x, i| b.load(x, &[v(i)]);
    let and = |value: Expr, mask| {
        let mask = Expr::literal(value.dtype, Number::Int(mask));
        binary(BinaryOp::BitAnd, value, mask)
    };
    for kind in [LoopKind::Serial, LoopKind::Vector] {
        for (size, mask, checks) in [(256, 255, 0), (255, 255, 1), (16, 15, 0), (15, 15, 1)] {
            let mut b = Builder::new();
            let (x, table) = (b.argument(DType::Int32, &[16]), b.argument(DType::UInt8, &[size]));
            let (out, i) = (b.argument(DType::UInt8, &[16]), b.var("i"));
            let chosen = data(and(place(&b, x, i), mask));
            let body = set(out, &[v(i)], b.load(table, &[chosen]));
            let kernel = b.compile(runnable()[0], vec![each(i, 16, kind, vec![body])]);
            assert_eq!(kernel.kernel.checks().len(), checks, "{kind:?} {size} {mask}");
        }
        for (low, high, checks) in [(0, 9, 0), (0, 10, 1), (-1, 9, 1)] {
            let mut b = Builder::new();
            let (x, table) = (b.argument(DType::Int32, &[16]), b.argument(DType::UInt8, &[10]));
            let (out, i) = (b.argument(DType::UInt8, &[16]), b.var("i"));
            let chosen = data(place(&b, x, i)).maximum(&c(low)).minimum(&c(high));
            let body = set(out, &[v(i)], b.load(table, &[chosen]));
            let kernel = b.compile(runnable()[0], vec![each(i, 16, kind, vec![body])]);
            assert_eq!(kernel.kernel.checks().len(), checks, "{kind:?} {low}..={high}");
        }
    }
}

/// Comparisons of indices give the same truth values in vectors and in scalar code.
#[test]
fn comparisons_of_indices() {
    let operators = [
        BinaryOp::Equal,
        BinaryOp::NotEqual,
        BinaryOp::Less,
        BinaryOp::LessEqual,
        BinaryOp::Greater,
        BinaryOp::GreaterEqual,
    ];
    for vectors in runnable() {
        for lanes in [2, 5, 16, 64] {
            for (by, scale) in [(1, 1), (2, 1), (3, 50), (7, 1000), (1, 1 << 40)] {
                for op in operators {
                    for limit in [-1, 0, 1, 5] {
                        check_comparison(vectors, lanes, by, scale, op, limit * scale);
                    }
                }
            }
        }
    }
}

/// out(i) = scale * (i % by) - row op limit
fn check_comparison(vectors: VectorInstructions, lanes: i64, by: i64, scale: i64, op: BinaryOp, limit: i64) {
    const ROWS: i64 = 3;
    let of_lane = |lane: IndexExpr| match by {
        1 => lane.scale(scale),
        _ => lane.modulo(&c(by)).scale(scale),
    };
    let mut b = Builder::new();
    let out = b.argument(DType::Bool, &[ROWS, lanes]);
    let (row, lane) = (b.var("row"), b.var("lane"));
    let value = index(of_lane(v(lane)).sub(&v(row)));
    let body = set(out, &[v(row), v(lane)], binary(op, value, int(limit)));
    let body = each(row, ROWS, LoopKind::Serial, vec![each(lane, lanes, LoopKind::Vector, vec![body])]);
    let kernel = b.compile(vectors, vec![body]);
    let mut found = vec![9u8; (ROWS * lanes) as usize];
    assert_eq!(kernel.run(&mut [found.bytes()]), 0);
    let truth = |at: i64| {
        let own = if by == 1 { at % lanes } else { at % lanes % by };
        let (left, right) = (Number::Int((own * scale - at / lanes).into()), Number::Int(limit.into()));
        arithmetic::binary(op, left, right, DType::Int64).as_i128() as u8
    };
    let wanted: Vec<u8> = (0..ROWS * lanes).map(truth).collect();
    assert_eq!(found, wanted, "{vectors:?} {lanes} lanes, {scale} * (i % {by}) {op:?} {limit}");
}

/// out(i) = a(i) < 100 ? a(i) - shift : in(i + shift), where lanes run whose other branch is
/// outside.
#[test]
fn branches_of_a_choice_read_only_what_they_may() {
    for vectors in runnable() {
        for lanes in [3, 16] {
            for shift in [-2, 0, 3] {
                for mask in [Lanes::All, Lanes::First(lanes - 1), Lanes::Before(lanes + 1)] {
                    check_choice(vectors, lanes, shift, mask);
                }
            }
        }
    }
}

fn check_choice(vectors: VectorInstructions, lanes: i64, shift: i64, mask: Lanes) {
    let count = 2 * lanes;
    let last = match mask {
        Lanes::All => count,
        Lanes::First(first) => lanes + first,
        Lanes::Before(end) => end,
    };
    let mut b = Builder::new();
    let (input, out) = (b.argument(DType::UInt8, &[last]), b.argument(DType::UInt8, &[count]));
    let load = |at: IndexExpr| Expr { dtype: DType::UInt8, kind: ExprKind::Load(access(input, &[at])) };
    let byte = |value: i128| Expr::literal(DType::UInt8, Number::Int(value));
    let body = |at: IndexExpr| {
        let small = binary(BinaryOp::Less, load(at.clone()), byte(100));
        let doubled = binary(BinaryOp::Add, load(at.clone()), load(at.clone()));
        set(out, std::slice::from_ref(&at), choose(small, doubled, load(at.offset(shift))))
    };
    let (body, runs) = masked_loop(&mut b, lanes, mask, &body);
    let kernel = b.compile(vectors, vec![body]);
    let mut input = zeros(DType::UInt8, last);
    let mut wanted = zeros(DType::UInt8, count);
    // The second branch is taken only where it is inside.
    let number = |at: i64| if at % 2 == 0 && (0..last).contains(&(at + shift)) { 100 + at } else { at };
    for at in 0..last {
        input.set(at as usize, Number::Int(number(at).into()));
        if runs[at as usize] {
            let value = if number(at) < 100 { 2 * number(at) } else { number(at + shift) };
            wanted.set(at as usize, Number::Int(value.into()));
        }
    }
    check(&kernel, &input, &mut [], &wanted, &format!("{vectors:?} {lanes} {shift} {mask:?}"));
}
