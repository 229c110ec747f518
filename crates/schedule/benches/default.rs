//! Measures how the time to write and to apply the default schedule grows with the number of
//! stages.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilewright_ir::Program;
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Cpu, VectorInstructions};

/// The text of a stage, given its number. It reads the stage before it.
type Stage = fn(usize) -> String;

const KINDS: [(&str, Stage); 4] = [
    ("pointwise", |at| format!("s{}(y,x) = exp(s{}(y,x)) + s{}(y,x) * s0(y,x)", at, at - 1, at - 1)),
    ("normalisation", |at| {
        format!("m{at}(y) +=! s{before}(y,x)  s{at}(y,x) = s{before}(y,x) - m{at}(y) / W", before = at - 1)
    }),
    ("product", |at| format!("s{at}(y,x) +=! s{}(y,k) * A(k,x)", at - 1)),
    ("stencil", |at| {
        let before = format!("s{}", at - 1);
        format!(
            "s{at}(y,x) = {before}(clamp(y-1,0,H-1), x) + {before}(y, clamp(x-1,0,W-1)) + {before}(y,x) \
             + {before}(y, clamp(x+1,0,W-1)) + {before}(clamp(y+1,0,H-1), x) where y in 0:H, x in 0:W"
        )
    }),
];

fn program(stages: usize, stage: Stage) -> Option<Program> {
    let body: Vec<String> = (1..stages).map(stage).collect();
    let last = stages - 1;
    let text = format!(
        "def chain(float(H,W) s0, float(W,W) A) -> (O) {{\n{}\nO(y,x) = s{last}(y,x) + A(x,x) }}",
        body.join("\n")
    );
    let bindings: Bindings = [("H", 1536), ("W", 2560)].into_iter().collect();
    check(&parse(&text).ast, "chain", &bindings).program
}

fn schedule(c: &mut Criterion) {
    let cpu = Cpu { cores: 8, vectors: VectorInstructions::Avx512, caches: vec![32 << 10, 1 << 20] };
    let mut group = c.benchmark_group("schedule");
    group.sample_size(10);
    for (name, stage) in KINDS {
        for stages in [50, 100, 200, 400] {
            let program = program(stages, stage).expect("the program is accepted");
            group.throughput(Throughput::Elements(stages as u64));
            group.bench_with_input(BenchmarkId::new(name, stages), &program, |bencher, program| {
                bencher.iter(|| {
                    let schedule = schedule_by_rules(black_box(program), &cpu);
                    apply(program, &schedule, &cpu).expect("the default schedule is legal")
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, schedule);
criterion_main!(benches);
