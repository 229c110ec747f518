//! Random programs under random schedules: every schedule that `apply` accepts computes the same as
//! the program.
//!
//! `TILEWRIGHT_SEED` and `TILEWRIGHT_CASES` choose other and more cases than those of every run. A
//! failure is printed with its loops, as the smallest program, sizes and schedule found that fail
//! in the same way. `TILEWRIGHT_FAILURES` is the most failures that are printed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

#[path = "random/mod.rs"]
mod random;

use std::collections::BTreeSet;
use std::env;

use random::case::{Case, checked};
use random::rng::Rng;
use random::schedule::{Counts, GPU_KINDS, KINDS, Machine, schedule_for};
use random::shrink::shrink;

/// The most points that a program may have.
const MOST_POINTS: u64 = 4000;

fn setting(name: &str, otherwise: u64) -> u64 {
    env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// The totals over all cases.
struct Tally {
    machine: Machine,
    programs: u64,
    refused: u64,
    steps: usize,
    counts: Counts,
    /// The signatures of the failures so far.
    seen: BTreeSet<String>,
    failures: Vec<String>,
}

#[test]
fn accepted_schedules_compute_what_the_program_does() {
    try_cases(Machine::Cpu, 1500);
}

#[test]
fn accepted_schedules_for_a_gpu_compute_what_the_program_does() {
    try_cases(Machine::Gpu, 800);
}

fn try_cases(machine: Machine, cases: u64) {
    let (seed, cases) = (setting("TILEWRIGHT_SEED", 1), setting("TILEWRIGHT_CASES", cases));
    let most = setting("TILEWRIGHT_FAILURES", 4) as usize;
    let mut tally = Tally::on(machine);
    random::keep_expected_panics();
    for case in 0..cases {
        if tally.failures.len() < most {
            tally.run(seed, case);
        }
    }
    tally.print();
    assert!(tally.failures.is_empty(), "{}", tally.failures.join("\n\n"));
    tally.expect_variety();
}

impl Tally {
    fn on(machine: Machine) -> Tally {
        let (counts, seen, failures) = (Counts::default(), BTreeSet::new(), Vec::new());
        Tally { machine, programs: 0, refused: 0, steps: 0, counts, seen, failures }
    }

    fn run(&mut self, seed: u64, number: u64) {
        let mut rng = Rng::new(seed, number);
        let source = random::program::program(&mut rng);
        let program = match checked(&source) {
            Some(program) if tilewright_interp::count_points(&program) <= MOST_POINTS => program,
            _ => {
                self.refused += 1;
                return;
            }
        };
        self.programs += 1;
        let schedule = schedule_for(self.machine, &mut rng, &program, &mut self.counts);
        self.steps += schedule.steps.len();
        let case = Case { source, schedule };
        let machine = self.machine;
        let failure = |case: &Case| case.failure_on(machine);
        if let Some(found) = failure(&case) {
            if !self.seen.insert(found.signature()) {
                return;
            }
            let small = shrink(case, |case| failure(case).is_some_and(|other| other.kind == found.kind));
            let found = failure(&small).unwrap_or(found);
            self.failures.push(format!("=== case {number}: {:?}\n{small}{}", found.kind, found.message));
        }
    }

    fn print(&self) {
        println!("{} programs, {} refused, {} steps", self.programs, self.refused, self.steps);
        for (kind, (tried, accepted)) in &self.counts.0 {
            println!("{kind:16} {accepted:6} of {tried:6} accepted");
        }
    }

    /// Fails if the generators make too few accepted programs and steps.
    fn expect_variety(&self) {
        assert!(self.programs >= 2 * self.refused, "{} of the programs are refused", self.refused);
        let kinds = match self.machine {
            Machine::Cpu => KINDS.len(),
            Machine::Gpu => GPU_KINDS.len(),
        };
        assert_eq!(self.counts.0.len(), kinds, "{:?}", self.counts);
        for (kind, (tried, accepted)) in &self.counts.0 {
            // For a GPU few stages can move, because most are already bound. In few of
            // these programs can parts be kept; tests/store_at.rs has random stencils.
            let least = match (*kind, self.machine) {
                ("store_at", _) => 100,
                // Most recurrences of these programs are clamped, or rounded to 16 bits.
                ("scan", _) => 40,
                // A temporary must be cloned before other steps change its loops.
                ("clone", _) => 16,
                (_, Machine::Gpu) => 16,
                (_, Machine::Cpu) => 8,
            };
            assert!(least * accepted >= *tried, "of {tried} steps `{kind}` only {accepted} were accepted");
        }
    }
}
