//! `tilewright strategies compare`: runs several strategies on the same programs and reports the
//! outcome.

use std::sync::Arc;

use tilewright::knob::Knobs;
use tilewright::report::comparison;
use tilewright::strategy::{ALL, Experience, Start, by_name, grid};
use tilewright::target::host_model;
use tilewright::tuner::compare::{
    Arena, Budget, CompareError, Compared, Comparison, Contest, Entry, Landscape, LandscapeFile, TapeError,
};
use tilewright::tuner::fleet::Fleet;
use tilewright::tuner::tune::Stop;

use super::files::{Files, json};
use super::programs::{given, machine_of, recorded};
use super::watch::Watch;
use crate::args::strategies::CompareArgs;
use crate::failure::Failure;
use crate::output::{complain, print};
use crate::template;
use crate::worker::{self, launch, stop_on_signals};

/// The number of trials of a search if no limit is given.
const TRIALS: usize = 100;

/// Compares strategies on every program, prints the tables, and writes the files of `--out`.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let contest = contest(args)?;
    let mut tape = tape(args)?;
    let entries = if args.replay.is_some() { recorded(args, &tape)? } else { given(args)? };
    let files = args.out.as_deref().map(Files::new).transpose()?;
    let stop = stop_on_signals();
    let mut comparison = Comparison { about: about(args, &contest, &entries), programs: Vec::new() };
    let mut experience = Vec::new();
    let mut ended = Ok(());
    for entry in &entries {
        match compare(args, entry, &contest, &mut tape, &experience, &stop) {
            Ok((compared, lessons)) => {
                comparison.programs.push(compared);
                experience.extend(lessons);
            }
            Err(failure) => ended = Err(failure),
        }
        if stop.is_asked() || ended.is_err() {
            break;
        }
    }
    if comparison
        .programs
        .iter()
        .all(|compared| compared.strategies.iter().all(|own| own.searches.is_empty()))
    {
        return ended.and(Err(Failure::Input("stopped before a search was over".to_owned())));
    }
    if stop.is_asked() || ended.is_err() {
        complain("stopped: the table has the searches that were over");
    }
    print(&if args.json { json(&comparison)? } else { comparison::text(&comparison) })?;
    if let Some(files) = files {
        complain(&files.write(&comparison)?);
    }
    ended
}

/// The strategies that are compared, their seeds and their budget.
fn contest(args: &CompareArgs) -> Result<Contest, Failure> {
    let all =
        || ALL.iter().map(|entry| entry.name).filter(|name| *name != grid::ENTRY.name).map(str::to_owned);
    let strategies = if args.strategies.is_empty() { all().collect() } else { args.strategies.clone() };
    for (at, name) in strategies.iter().enumerate() {
        by_name(name, &Knobs::default(), Start::default())
            .map_err(|error| Failure::Usage(error.to_string()))?;
        if strategies[..at].contains(name) {
            return Err(Failure::Usage(format!("--strategies has {name} twice")));
        }
    }
    let limited = args.time.is_some() || args.share.is_some();
    let budget =
        Budget { trials: args.trials.or((!limited).then_some(TRIALS)), time: args.time, share: args.share };
    Ok(Contest {
        strategies,
        seeds: args.seeds.clone().collect(),
        budget,
        starts: args.starts,
        exhaustive: u128::from(args.exhaustive),
        sees_nests: !args.own_features,
        abreast: args.abreast,
    })
}

/// Opens the file of earlier measurements: for appending with `--record`, for reading with
/// `--replay`.
fn tape(args: &CompareArgs) -> Result<LandscapeFile, Failure> {
    let opened = match (&args.record, &args.replay) {
        (Some(path), _) => (path, LandscapeFile::open(path)),
        (None, Some(path)) => (path, LandscapeFile::read(path)),
        (None, None) => return Ok(LandscapeFile::default()),
    };
    let failure = |error: TapeError| Failure::Input(format!("{}: {error}", opened.0.display()));
    opened.1.map_err(failure)
}

/// Runs all strategies on one program. With `--transfer`, also returns the measurements that the
/// models of the next programs learn from.
fn compare(
    args: &CompareArgs,
    entry: &Entry,
    contest: &Contest,
    tape: &mut LandscapeFile,
    experience: &[Experience],
    stop: &Arc<Stop>,
) -> Result<(Compared, Option<Experience>), Failure> {
    let failure = |error: CompareError| failure(error);
    let task = entry.task.task().map_err(|error| Failure::Input(error.to_string()))?;
    let program = &task.program;
    let machine = machine_of(entry)?;
    let space = template::space(entry.template.as_deref(), program, &machine)?;
    let arena = Arena::new(program, &machine, &space, experience);
    let mut watch = Watch::new(&entry.name, contest);
    let known = tape.known(entry);
    let compete = |landscape: &mut Landscape<'_>, watch: &mut Watch| {
        let compared = arena.compare(entry.name.clone(), contest, landscape, watch, stop);
        watch.end();
        tell_unknown(landscape);
        Ok((compared.map_err(failure)?, args.transfer.then(|| arena.experience(landscape))))
    };
    if args.replay.is_some() {
        return compete(&mut Landscape::recorded(known), &mut watch);
    }
    let mut fleet = Fleet::start(&launch()?, task.clone(), Vec::new(), stop).map_err(worker::failure)?;
    tape.begin(entry).map_err(|error| failure(CompareError::Keep(error)))?;
    compete(&mut Landscape::measured(known, &mut fleet, tape), &mut watch)
}

fn tell_unknown(landscape: &Landscape<'_>) {
    if let Some(why) = landscape.unconfirmed() {
        complain(&format!("warning: what was found could not be measured again: {why}"));
    }
    if landscape.unknown() > 0 {
        complain(&format!(
            "warning: {} candidates are not in the recording and count as failed; it was made with other options",
            landscape.unknown()
        ));
    }
}

fn failure(error: CompareError) -> Failure {
    match error {
        CompareError::Worker(lost) => worker::failure(lost),
        CompareError::Strategy(error) => Failure::Usage(error.to_string()),
        CompareError::Task(error) => Failure::Input(error.to_string()),
        CompareError::Keep(error) => Failure::Machine(CompareError::Keep(error).to_string()),
        CompareError::Stopped => Failure::Input("stopped before a search was over".to_owned()),
        error @ CompareError::Default(_) => Failure::Machine(error.to_string()),
    }
}

/// Describes how the comparison was made: budget, machine and options.
fn about(args: &CompareArgs, contest: &Contest, entries: &[Entry]) -> Vec<(String, String)> {
    let Budget { trials, time, share } = contest.budget;
    let budget = [
        trials.map(|trials| format!("{trials} trials")),
        time.map(|time| format!("{:.1} s", time.as_secs_f64())),
        share.map(|share| format!("{} % of the space", 100.0 * share)),
    ];
    let place = entries.first().map(|entry| match entry.task.place.options().as_slice() {
        [(_, threads), (_, vectors)] => {
            let model = if args.replay.is_some() { "a CPU".to_owned() } else { host_model() };
            format!("{model}: {threads} threads, {vectors}")
        }
        _ => {
            let machine = entry.task.place.recorded_machine(&entry.caches);
            machine.map(|machine| machine.target().hardware().model()).unwrap_or_default()
        }
    });
    let row = |name: &str, value: String| (name.to_owned(), value);
    let mut about = vec![
        row("machine", place.unwrap_or_default()),
        row("budget of a search", budget.into_iter().flatten().collect::<Vec<_>>().join(", ")),
        row("seeds", contest.seeds.len().to_string()),
        row("points to start from", contest.starts.to_string()),
        row("searches at the same time", contest.abreast.to_string()),
        row("version", tilewright::cache::TOOL_VERSION.to_owned()),
    ];
    if args.replay.is_some() {
        about.push(row("measurements", "replayed from a recording".to_owned()));
    }
    about
}
