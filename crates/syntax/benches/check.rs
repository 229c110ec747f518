//! Measures how the time to check a program grows with the number of statements, and with the
//! number of calls of functions with preconditions.

use std::fmt::Write;
use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilewright_syntax::{Bindings, diagnose, parse};

/// A chain of statements of five kinds: pointwise, reduction, nested function calls, guarded
/// neighbour, clamped access.
fn program(statements: usize) -> String {
    let mut text = String::from("def chain(float(N,M) A, float(H,W) I) -> (O) {\n");
    let mut previous = "A".to_owned();
    for at in 0..statements.saturating_sub(1) {
        let value = match at % 5 {
            0 => format!("= {previous}(i,j) * 2 + 1"),
            1 => format!("+=! {previous}(i,k) * A(i,k) where j in 0:M"),
            2 => format!("= max(exp({previous}(i,j)), 0)"),
            3 => format!("= {previous}(i,j) + (i+1 < N && j > 0 ? {previous}(i+1, j-1) : 0)"),
            _ => format!("= {previous}(i,j) + I(min(i, H-1), min(j, W-1))"),
        };
        let _ = writeln!(text, "  t{at}(i,j) {value}");
        previous = format!("t{at}");
    }
    let _ = writeln!(text, "  O(i,j) = {previous}(i,j)\n}}");
    text
}

/// One tensor that every statement updates.
fn updates(statements: usize) -> String {
    let update = "  O(i) = O(i) * 2 + A(i)\n".repeat(statements.saturating_sub(1));
    format!("def updates(float(N) A) -> (O) {{\n  O(i) = A(i)\n{update}}}\n")
}

/// A pyramid that calls two functions with seven preconditions for each level.
fn pyramid(levels: usize) -> String {
    let mut text = String::from(
        "def crop(float(.., H, W) f, int m) -> (inner)
    requires m >= 0, H >= 2*m, W >= 2*m, H - 2*m >= 1, W > 2*m {
  inner(.., y, x) = f(.., y + m, x + m) where y in 0:H - 2*m, x in 0:W - 2*m
}
def down(float(.., H, W) f) -> (small) requires H >= 3, W >= 3 {
  small(.., y, x) = f(.., 2*y, 2*x) + f(.., 2*y + 1, 2*x + 1) + f(.., 2*y + 2, 2*x + 2)
}
def pyramid(float(H, W) level0, int m) -> (O) requires m >= 0 {\n",
    );
    for at in 0..levels {
        let _ = writeln!(text, "  inner{at} = crop(level{at}, m)\n  level{} = down(inner{at})", at + 1);
    }
    let _ = writeln!(text, "  O(y, x) = level{levels}(y, x)\n}}");
    text
}

fn check(c: &mut Criterion) {
    let mut group = c.benchmark_group("check");
    group.sample_size(10);
    for statements in [125, 250, 500, 1000, 2000, 4000] {
        group.throughput(Throughput::Elements(statements as u64));
        for (name, text) in [("chain", program(statements)), ("updates", updates(statements))] {
            bench(&mut group, BenchmarkId::new(name, statements), &text);
        }
    }
    for levels in [2, 4, 8] {
        group.throughput(Throughput::Elements(2 * levels as u64));
        bench(&mut group, BenchmarkId::new("preconditions", levels), &pyramid(levels));
    }
    group.finish();
}

fn bench(group: &mut BenchmarkGroup<'_, WallTime>, id: BenchmarkId, text: &str) {
    group.bench_with_input(id, text, |bencher, text| {
        bencher.iter(|| {
            let found = diagnose(&parse(black_box(text)), &Bindings::default());
            assert!(found.is_empty());
        });
    });
}

criterion_group!(benches, check);
criterion_main!(benches);
