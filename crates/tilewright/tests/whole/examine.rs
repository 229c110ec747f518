//! Runs one case of a campaign: makes the program and its schedules from the case number, tries
//! each schedule, and reports counts and failures.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use tilewright_schedule::Schedule;
use tilewright_search::space::Space;

use super::builder::program;
use super::case::{Case, DEVICE, Failure, Kind, Oracle, Outcome, Place};
use super::source::Source;
use crate::random::guarded;
use crate::random::rng::Rng;
use crate::random::schedule::{Counts, Machine, everything_for, with_finishing_steps};

/// How a schedule is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// The default schedule, by static analysis.
    Default,
    /// A schedule without steps.
    Plain,
    /// Random steps.
    Steps,
    /// A random point of the search space.
    Point,
}

/// The schedules of a case, in order. After a failure, the remaining schedules for the same target
/// are skipped.
const CPU: [ScheduleKind; 7] = [
    ScheduleKind::Default,
    ScheduleKind::Plain,
    ScheduleKind::Steps,
    ScheduleKind::Steps,
    ScheduleKind::Point,
    ScheduleKind::Steps,
    ScheduleKind::Point,
];
const GPU: [ScheduleKind; 5] = [
    ScheduleKind::Default,
    ScheduleKind::Steps,
    ScheduleKind::Point,
    ScheduleKind::Steps,
    ScheduleKind::Point,
];
const ON_DEVICE: [ScheduleKind; 3] = [ScheduleKind::Default, ScheduleKind::Point, ScheduleKind::Steps];

/// The settings of a campaign.
#[derive(Clone, Debug)]
pub struct Settings {
    pub seed: u64,
    /// The percentage of programs that also run on a device.
    pub on_device: usize,
    /// The percentage of schedules for a CPU that are compiled. Otherwise only the loops are
    /// interpreted.
    pub compiled: usize,
    /// Only schedules whose name contains this text are tried, such as `Default` or `Cpu Point`.
    /// Empty means all.
    pub only: String,
}

/// Counts of events, by name.
pub type Tally = BTreeMap<String, u64>;

/// The outcome of one case.
#[derive(Default)]
pub struct Report {
    pub tally: Tally,
    pub failures: Vec<(Case, Failure)>,
}

/// The program of a case.
pub fn source(settings: &Settings, number: u64) -> Source {
    program(&mut Rng::new(settings.seed, number))
}

/// Runs a case. `before` is called before each attempt, in case the attempt ends the process.
pub fn examine(settings: &Settings, number: u64, before: &dyn Fn(&Case)) -> Report {
    let mut report = Report::default();
    let source = source(settings, number);
    let data = number + 1;
    let blank = Case { source, place: Place::Cpu, schedule: None, data };
    before(&blank);
    let oracle = match Oracle::of(&blank.source, data) {
        Ok(oracle) => oracle,
        Err(outcome) => {
            report.add("program", outcome, blank);
            return report;
        }
    };
    report.count("program: accepted".to_string());
    let mut places = vec![(Place::Cpu, &CPU[..]), (Place::Gpu, &GPU[..])];
    let chosen = Rng::new(settings.seed ^ 0x5eed, number).chance(settings.on_device);
    if chosen && DEVICE.is_some() {
        places.push((Place::Device, &ON_DEVICE[..]));
    }
    for (place, ways) in places {
        for (turn, way) in ways.iter().enumerate() {
            if !format!("{place:?} {way:?}").contains(&settings.only) {
                continue;
            }
            let mut rng =
                Rng::new(settings.seed ^ ((turn as u64 + 1) << 40) ^ ((place as u64) << 48), number);
            let compiled = place != Place::Cpu || rng.chance(settings.compiled);
            let place = if compiled { place } else { Place::Loops };
            let case = Case { place, ..blank.clone() };
            if report.try_schedule_kind(&oracle, case, *way, &mut rng, before) {
                break;
            }
        }
    }
    report
}

impl Report {
    fn count(&mut self, what: String) {
        *self.tally.entry(what).or_default() += 1;
    }

    /// Counts an outcome. Returns true when the case failed.
    fn add(&mut self, what: &str, outcome: Outcome, case: Case) -> bool {
        match outcome {
            Outcome::Agrees => self.count(format!("{what}: agrees")),
            Outcome::Refused(why) => {
                let most = if why.starts_with("schedule") { 7 } else { 2 };
                let words = why.split(' ').filter(|word| !word.contains(['`', '(', '.']));
                let why: Vec<&str> = words.filter(|word| word.parse::<f64>().is_err()).take(most).collect();
                self.count(format!("{what}: refused: {}", why.join(" ")));
            }
            Outcome::Failed(failure) => {
                self.count(format!("{what}: FAILED {:?}", failure.kind));
                self.failures.push((case, *failure));
                return true;
            }
        }
        false
    }

    fn try_schedule_kind(
        &mut self,
        oracle: &Oracle,
        case: Case,
        way: ScheduleKind,
        rng: &mut Rng,
        before: &dyn Fn(&Case),
    ) -> bool {
        let what = format!("{:?} {way:?}", case.place);
        let schedule = match guarded(|| schedule(oracle, case.place, way, rng)) {
            Ok(Some(schedule)) => schedule,
            Ok(None) => {
                self.count(format!("{what}: no such schedule"));
                return false;
            }
            Err(message) => {
                let failure = Failure { kind: Kind::SchedulePanics, message, loops: String::new() };
                return self.add(&what, Outcome::Failed(Box::new(failure)), case);
            }
        };
        let case = Case { schedule, ..case };
        before(&case);
        let outcome = oracle.try_schedule(case.place, case.schedule.as_ref());
        self.add(&what, outcome, case)
    }
}

/// Makes a schedule. The inner `None` is the default schedule; the outer `None` says that there is
/// no such schedule for this program.
fn schedule(oracle: &Oracle, place: Place, way: ScheduleKind, rng: &mut Rng) -> Option<Option<Schedule>> {
    let program = &oracle.program;
    let mut counts = Counts::default();
    match way {
        ScheduleKind::Default => Some(None),
        ScheduleKind::Plain => Some(Some(Schedule { steps: Vec::new() })),
        ScheduleKind::Steps if matches!(place, Place::Cpu | Place::Loops) => {
            let schedule = everything_for(Machine::Cpu, rng, program, &mut counts);
            let more = rng.chance(35);
            Some(Some(if more {
                with_finishing_steps(rng, program, schedule, &mut counts)
            } else {
                schedule
            }))
        }
        ScheduleKind::Steps => Some(Some(everything_for(Machine::Gpu, rng, program, &mut counts))),
        ScheduleKind::Point => {
            let space = Space::new(program, place.target());
            let mut points = Pcg64Mcg::seed_from_u64(rng.between(0, i64::MAX - 1) as u64);
            let drawn = (0..4).filter_map(|_| space.knobs().sample(&mut points));
            let mut decoded = drawn.filter_map(|point| space.decode(&point).ok());
            decoded.next().map(Some)
        }
    }
}
