//! The phase `collect` of `tilewright train`: measures schedules, and shows how far it is.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tilewright::train::collect::{Collection, Progress, Subject, random_subjects};
use tilewright::train::data::TrainingFile;
use tilewright::tuner::task::{ExecutionTarget, RecordedTask};

use crate::args::train::TrainArgs;
use crate::args::{ProgramArgs, RoundingArgs, parse_sizes};
use crate::failure::Failure;
use crate::output::print_error_line;
use crate::problem::Problem;
use crate::worker;

/// Measures schedules and appends them to a file.
pub fn run(args: &TrainArgs, place: &ExecutionTarget, path: &Path) -> Result<(), Failure> {
    let refused = |error: std::io::Error| Failure::Input(format!("{}: {error}", path.display()));
    let mut file = TrainingFile::open(path).map_err(refused)?;
    let given: Vec<Subject> =
        args.programs.iter().map(|text| subject(args, text, place)).collect::<Result<_, _>>()?;
    let collection = Collection {
        launch: worker::launch()?,
        target: place.clone(),
        schedules: args.schedules as usize,
        until: Instant::now() + args.time,
        stop: worker::stop_on_signals(),
    };
    let mut display = Display::new(args.time);
    let mut watch = |subject: &Subject, progress: &Progress| display.show(subject, progress);
    let outcome = match given.is_empty() {
        true => collection.run(random_subjects(place, args.seed), &mut file, &mut watch),
        false => collection.run(given, &mut file, &mut watch),
    };
    display.end();
    outcome.map_err(|error| Failure::Machine(error.to_string()))?;
    print_error_line(&format!("{} programs in {}", file.len(), path.display()));
    Ok(())
}

/// Reads a program from `FILE[:NAME][@SIZES]`.
fn subject(args: &TrainArgs, text: &str, place: &ExecutionTarget) -> Result<Subject, Failure> {
    let (file, sizes) = match text.rsplit_once('@') {
        Some((file, sizes)) => {
            (file, parse_sizes(sizes).map_err(|why| Failure::Usage(format!("{text}: {why}")))?)
        }
        None => (text, Vec::new()),
    };
    let rounding = RoundingArgs::default();
    let arguments =
        ProgramArgs { file: file.to_owned(), sizes, inputs: args.inputs.clone(), seed: 0, rounding };
    let problem = Problem::read(&arguments)?;
    let task = RecordedTask {
        source: problem.source.file.text.clone(),
        function: problem.program.name.clone(),
        sizes: problem.given_sizes(),
        target: place.clone(),
        seed: 0,
        contract: true,
    };
    Ok(Subject { kind: args.group.clone(), task })
}

/// A bar of the elapsed time in a terminal, and a line for each program elsewhere.
struct Display {
    bar: Option<ProgressBar>,
    begun: Instant,
    programs: usize,
    schedules: usize,
}

impl Display {
    fn new(time: Duration) -> Display {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(time.as_secs());
            let style = ProgressStyle::with_template("measuring {bar:30} {eta} left, {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Display { bar, begun: Instant::now(), programs: 0, schedules: 0 }
    }

    fn show(&mut self, subject: &Subject, progress: &Progress) {
        let name = &subject.task.function;
        match progress {
            Progress::Measured(count) => {
                self.programs += 1;
                self.schedules += count;
                let all = format!("{} schedules of {} programs", self.schedules, self.programs);
                match &self.bar {
                    Some(bar) => bar.set_message(all),
                    None => print_error_line(&format!("{name}: {count} schedules; {all}")),
                }
            }
            Progress::LeftOut(why) => match &self.bar {
                Some(bar) => bar.println(format!("{name} is left out: {why}")),
                None => print_error_line(&format!("{name} is left out: {why}")),
            },
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.begun.elapsed().as_secs());
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
