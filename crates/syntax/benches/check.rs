//! Measures how the time to check a program grows with the number of statements.

use std::fmt::Write;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
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

fn check(c: &mut Criterion) {
    let mut group = c.benchmark_group("check");
    group.sample_size(10);
    for statements in [125, 250, 500, 1000, 2000, 4000] {
        group.throughput(Throughput::Elements(statements as u64));
        for (name, text) in [("chain", program(statements)), ("updates", updates(statements))] {
            group.bench_with_input(BenchmarkId::new(name, statements), &text, |bencher, text| {
                bencher.iter(|| {
                    let found = diagnose(&parse(black_box(text)), &Bindings::default());
                    assert!(found.is_empty());
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, check);
criterion_main!(benches);
