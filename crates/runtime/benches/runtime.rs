//! What the runtime itself costs: starting a parallel loop, and packing.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::{Array2, s};
use tilewright_runtime::{Buffer, Pool, View, copy, measure, timing};

/// A loop that does nothing: right after another one, and after a pause in which the workers fell asleep.
fn start(c: &mut Criterion) {
    let mut group = c.benchmark_group("empty parallel loop");
    for threads in [1, 2, 4] {
        let pool = Pool::new(threads);
        let empty = |extent| pool.for_each(extent, |part| drop(black_box(part)));
        group.bench_function(BenchmarkId::new("warm", threads), |bencher| {
            bencher.iter(|| empty(threads as i64))
        });
        group.bench_function(BenchmarkId::new("warm, 1000 iterations", threads), |bencher| {
            bencher.iter(|| empty(1000));
        });
        group.bench_function(BenchmarkId::new("asleep", threads), |bencher| {
            let pause = || std::thread::sleep(Duration::from_millis(1));
            bencher.iter_batched(pause, |()| empty(threads as i64), criterion::BatchSize::PerIteration);
        });
    }
}

/// Two threads that wait for each other: how long until the second has come.
fn meet(c: &mut Criterion) {
    use std::sync::atomic::{AtomicU32, Ordering};
    let pool = Pool::new(2);
    c.bench_function("two threads meet in a loop", |bencher| {
        bencher.iter(|| {
            let here = AtomicU32::new(0);
            pool.for_each(2, |_| {
                here.fetch_add(1, Ordering::Relaxed);
                while here.load(Ordering::Relaxed) < 2 {
                    std::hint::spin_loop();
                }
            });
        });
    });
}

fn pack(c: &mut Criterion) {
    let mut group = c.benchmark_group("pack 1024x1024 float32");
    let array = Array2::<f32>::zeros((1024, 2048));
    let mut packed = Buffer::zeros(tilewright_ir::DType::Float32, &[1024, 1024]).expect("4 MB are there");
    let cases: [(&str, View<'_>); 4] = [
        ("rows", array.slice(s![.., ..1024]).into()),
        ("transposed", array.slice(s![.., ..1024]).reversed_axes().into()),
        ("every second", array.slice(s![.., ..;2]).into()),
        ("reversed rows", array.slice(s![..;-1, ..1024]).into()),
    ];
    group.throughput(Throughput::Bytes(8 << 20));
    for (name, view) in cases {
        group.bench_function(name, |bencher| bencher.iter(|| copy(&view, &mut packed.view_mut())));
    }
}

/// What `measure` says of a call that does nothing: its own cost.
fn clock(_: &mut Criterion) {
    let timing = measure(&timing::Options::default(), || Ok::<(), Infallible>(black_box(())));
    println!("measuring nothing: {timing:?}");
}

criterion_group!(benches, start, meet, pack, clock);
criterion_main!(benches);
