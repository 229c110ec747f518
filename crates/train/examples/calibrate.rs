//! Fits the speeds of the CPU model to measured schedules: `calibrate FITTED.gz [--check OTHER.gz]...`.
//!
//! Each speed is changed in turn, and a change stays if the predictions of the first file's
//! programs get better. The other files are only judged. Prints the speeds, and how well schedules
//! are ranked before and after.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use tilewright_ir::LoopNest;
use tilewright_schedule::{apply, text};
use tilewright_search::cost::cpu::{Machine, estimate};
use tilewright_target::{Cpu, Target};
use tilewright_train::data;

/// A program with its measured schedules.
struct Program {
    name: String,
    kind: String,
    cpu: Cpu,
    schedules: Vec<(LoopNest, f64)>,
}

/// How well the schedules of programs are predicted.
#[derive(Clone, Copy, Default, Debug)]
struct Quality {
    loss: f64,
    correlation: f64,
    chosen: f64,
}

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|own| own != "--check").collect();
    let sets: Vec<Vec<Program>> = files.iter().map(|file| load(Path::new(file))).collect();
    let first = Machine::typical(&sets[0][0].cpu);
    let print = |machine: &Machine, sets: &[Vec<Program>]| {
        for (file, set) in files.iter().zip(sets) {
            println!("{file}");
            let mut kinds: BTreeMap<&str, Vec<Quality>> = BTreeMap::new();
            for (program, quality) in set.iter().zip(qualities(set, machine)) {
                kinds.entry(&program.kind).or_default().push(quality);
                kinds.entry("~all").or_default().push(quality);
                if set.len() < 20 {
                    println!("    {:40} {:?}", program.name, quality);
                }
            }
            for (kind, own) in kinds {
                let mean = mean(&own);
                println!("  {kind:12} {:4} loss {:.4} rank {:.3} chosen {:.3}", own.len(), mean.loss, mean.correlation, mean.chosen);
            }
        }
    };
    print(&first, &sets);
    if let Ok(kind) = std::env::var("WORST") {
        for program in sets.iter().flatten().filter(|own| own.kind == kind || own.name.contains(&kind)) {
            println!("{} {:?}", program.name, qualities(std::slice::from_ref(program), &first)[0]);
            for (nest, measured) in &program.schedules {
                let found = estimate(nest, &program.cpu, &first);
                println!("   {:9.1} us measured {:9.1} predicted  {:.2}  {:?}", measured * 1e6, found.seconds * 1e6, found.seconds / measured, found.parts);
            }
        }
    }
    if std::env::var("FIT").is_err() {
        return;
    }
    let mut sets = sets;
    sets[0].iter_mut().for_each(|own| own.schedules.truncate(8));
    let mut best = (mean(&qualities(&sets[0], &first)).loss, first);
    for round in 0..3 {
        let before = best.0;
        for knob in 0..KNOBS.len() {
            for factor in [0.5, 0.75, 1.35, 2.0] {
                let mut machine = best.1.clone();
                (KNOBS[knob].1)(&mut machine, factor);
                let loss = mean(&qualities(&sets[0], &machine)).loss;
                println!("   {} x {factor}: {loss:.4}", KNOBS[knob].0);
                if loss < best.0 * 0.999 {
                    println!("round {round}: {} x {factor}: {:.4} -> {loss:.4}", KNOBS[knob].0, best.0);
                    best = (loss, machine);
                }
            }
        }
        if best.0 > before * 0.995 {
            break;
        }
    }
    println!("{:#?}", best.1);
    print(&best.1, &sets);
}

type Knob = (&'static str, fn(&mut Machine, f64));
const KNOBS: [Knob; 15] = [
    ("level 0", |m, f| m.bandwidth[0] *= f),
    ("level 1", |m, f| m.bandwidth[1] *= f),
    ("level 2", |m, f| if let Some(own) = m.bandwidth.get_mut(2) { *own *= f }),
    ("shared", |m, f| m.shared_bandwidth *= f),
    ("vector", |m, f| m.vector_ports *= f),
    ("latency", |m, f| m.latency *= f),
    ("loads", |m, f| m.load_ports *= f),
    ("stores", |m, f| m.store_ports *= f),
    ("scalar", |m, f| m.scalar_ports *= f),
    ("issue", |m, f| m.issue *= f),
    ("divide", |m, f| m.divide *= f),
    ("gather", |m, f| m.gather *= f),
    ("mispredict", |m, f| m.mispredict *= f),
    ("start_threads", |m, f| m.start_threads *= f),
    ("take_piece", |m, f| m.take_piece *= f),
];

fn load(file: &Path) -> Vec<Program> {
    let records = data::read(file).unwrap();
    let program = |record: &data::ProgramRecord| {
        let task = record.task.task().ok()?;
        let machine = task.target.recorded_machine(&record.caches).ok()?;
        let Target::Cpu(cpu) = machine.target() else { return None };
        let nest = |steps: &str| apply(&task.program, &text::parse(steps).schedule, machine.target()).ok();
        let schedules: Vec<_> =
            record.schedules.iter().filter_map(|own| Some((nest(&own.steps)?, own.seconds))).collect();
        (schedules.len() > 1).then(|| Program {
            name: record.name(),
            kind: record.kind.clone(),
            cpu: cpu.clone(),
            schedules,
        })
    };
    map(&records, program).into_iter().flatten().collect()
}

fn qualities(programs: &[Program], machine: &Machine) -> Vec<Quality> {
    map(programs, |program| {
        let pairs: Vec<(f64, f64)> = program
            .schedules
            .iter()
            .map(|(nest, measured)| (estimate(nest, &program.cpu, machine).seconds, *measured))
            .collect();
        quality(&pairs)
    })
}

fn quality(pairs: &[(f64, f64)]) -> Quality {
    let errors: Vec<f64> = pairs.iter().map(|(predicted, measured)| (predicted / measured).ln()).collect();
    let bias = errors.iter().sum::<f64>() / errors.len() as f64;
    // Nine tenths of the mean do not count, as for learned models.
    let loss = errors.iter().map(|own| (own - 0.9 * bias).clamp(-0.7, 0.7).powi(2)).sum::<f64>() / errors.len() as f64;
    let fastest = pairs.iter().map(|own| own.1).fold(f64::INFINITY, f64::min);
    let chosen = pairs.iter().min_by(|one, other| one.0.total_cmp(&other.0)).unwrap().1 / fastest;
    Quality { loss, correlation: correlation(pairs), chosen }
}

fn mean(all: &[Quality]) -> Quality {
    let count = all.len() as f64;
    Quality {
        loss: all.iter().map(|own| own.loss).sum::<f64>() / count,
        correlation: all.iter().map(|own| own.correlation).sum::<f64>() / count,
        chosen: (all.iter().map(|own| own.chosen.ln()).sum::<f64>() / count).exp(),
    }
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |values: Vec<f64>| -> Vec<f64> {
        let below = |value: f64| values.iter().filter(|own| **own < value).count() as f64;
        let equal = |value: f64| values.iter().filter(|own| **own == value).count() as f64;
        values.iter().map(|value| below(*value) + (equal(*value) - 1.0) / 2.0).collect()
    };
    let one = ranks(pairs.iter().map(|own| own.0).collect());
    let other = ranks(pairs.iter().map(|own| own.1).collect());
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |left: &[f64], right: &[f64]| {
        left.iter().zip(right).map(|(left, right)| (left - middle) * (right - middle)).sum::<f64>()
    };
    let scale = (product(&one, &one) * product(&other, &other)).sqrt();
    if scale > 0.0 { product(&one, &other) / scale } else { 0.0 }
}

/// Runs on all cores, in any order of the elements.
fn map<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let cores = thread::available_parallelism().map_or(1, |own| own.get());
    let mut found: Vec<(usize, R)> = thread::scope(|scope| {
        let run = || {
            let mut own = Vec::new();
            loop {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(value) = all.get(at) else { return own };
                own.push((at, work(value)));
            }
        };
        let running: Vec<_> = (0..cores).map(|_| scope.spawn(run)).collect();
        running.into_iter().flat_map(|own| own.join().unwrap()).collect()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, own)| own).collect()
}
