//! The worker's side.

use std::io::{self, BufRead, Write};
use std::time::Instant;

use tilewright_runtime::Executable;
use tilewright_schedule::Schedule;
use tilewright_schedule::text::parse;

use super::protocol::{Reply, Request};
use crate::bench::{Plan, Rounds};
use crate::outcome::{Effort, Outcome, Trial};
use crate::parallel;
use crate::rig::Rig;

/// Does what is asked for until there is nobody any more who asks.
pub fn serve(requests: impl BufRead, replies: impl Write) -> io::Result<()> {
    let mut server = Server { rig: None, rival: None, replies };
    for line in requests.lines() {
        let request = serde_json::from_str(&line?).map_err(io::Error::other)?;
        server.answer(request)?;
    }
    Ok(())
}

struct Server<W> {
    rig: Option<Rig>,
    /// The rival of the last batch, which is often that of the next.
    rival: Option<(String, Executable)>,
    replies: W,
}

impl<W: Write> Server<W> {
    fn answer(&mut self, request: Request) -> io::Result<()> {
        match request {
            Request::Open(task) => {
                let made = Rig::new(&task);
                let reply = match made {
                    Ok(rig) => {
                        self.rig = Some(rig);
                        Reply::Ready
                    }
                    Err(error) => Reply::Failed(error.to_string()),
                };
                self.say(&reply)
            }
            Request::Try { schedules, plan } => self.batch(&schedules, &plan),
            Request::Race { schedules, samples, time } => self.race(&schedules, samples, time),
        }
    }

    fn say(&mut self, reply: &Reply) -> io::Result<()> {
        let line = serde_json::to_string(reply).map_err(io::Error::other)?;
        writeln!(self.replies, "{line}")?;
        self.replies.flush()
    }

    fn batch(&mut self, schedules: &[String], plan: &Plan) -> io::Result<()> {
        let Some(mut rig) = self.rig.take() else {
            return self.say(&Reply::Failed("no task is open".to_owned()));
        };
        let begun = Instant::now();
        let built = built(&rig, schedules);
        self.build_rival(&rig, plan);
        let mut bench = rig.bench();
        let mut opponent = match (&self.rival, &plan.rival) {
            (Some((_, executable)), Some(rival)) => bench.opponent(executable, rival.seconds).ok(),
            _ => None,
        };
        for (at, (built, compiling)) in built.into_iter().enumerate() {
            if plan.within.is_some_and(|within| begun.elapsed().as_secs_f64() > within) {
                break;
            }
            let begun = Instant::now();
            let mut trial = match built.and_then(|executable| bench.bind(&executable)) {
                Ok(kernel) => {
                    self.say(&Reply::Running(at))?;
                    bench.measure(&kernel, plan, opponent.as_mut())
                }
                Err(trial) => trial,
            };
            trial.effort = Effort { compiling, measuring: begun.elapsed().as_secs_f64() };
            self.say(&Reply::Done(at, trial))?;
        }
        self.rig = Some(rig);
        self.say(&Reply::End)
    }

    /// A rival that cannot be built is done without.
    fn build_rival(&mut self, rig: &Rig, plan: &Plan) {
        let wanted = plan.rival.as_ref().map(|rival| &rival.schedule);
        if self.rival.as_ref().map(|(schedule, _)| schedule) == wanted {
            return;
        }
        let built = |text: &String| Some((text.clone(), read(text).and_then(|own| rig.build(&own)).ok()?));
        self.rival = wanted.and_then(built);
    }

    fn race(&mut self, schedules: &[String], samples: usize, time: f64) -> io::Result<()> {
        let Some(rig) = &mut self.rig else {
            return self.say(&Reply::Failed("no task is open".to_owned()));
        };
        let built: Result<Vec<Executable>, Trial> =
            built(rig, schedules).into_iter().map(|(built, _)| built).collect();
        let rounds = Rounds { samples, time, cap: 20.0 * time };
        let reply = match built {
            Err(trial) => Reply::Failed(trial.outcome.to_string()),
            Ok(built) => match rig.bench().race(&built, rounds) {
                Ok(samples) => Reply::Raced(samples),
                Err(error) => Reply::Failed(error.to_string()),
            },
        };
        self.say(&reply)
    }
}

/// Compiles schedules on all cores, with the seconds that each took.
fn built(rig: &Rig, schedules: &[String]) -> Vec<(Result<Executable, Trial>, f64)> {
    parallel::map(schedules, |text| {
        let begun = Instant::now();
        let built = read(text).and_then(|schedule| rig.build(&schedule));
        (built, begun.elapsed().as_secs_f64())
    })
}

fn read(text: &str) -> Result<Schedule, Trial> {
    let parsed = parse(text);
    match parsed.has_errors() {
        true => Err(Trial::failed(Outcome::Illegal("its text cannot be read".to_owned()))),
        false => Ok(parsed.schedule),
    }
}
