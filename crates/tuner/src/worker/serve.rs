//! The worker's side.

use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use tilewright_runtime::Executable;
use tilewright_runtime::timing::Options;
use tilewright_schedule::Schedule;
use tilewright_schedule::text::parse;

use super::protocol::{Reply, Request};
use crate::outcome::{Outcome, Trial};
use crate::parallel;
use crate::rig::{Plan, Rig};

/// Does what is asked for until there is nobody any more who asks.
pub fn serve(requests: impl BufRead, replies: impl Write) -> io::Result<()> {
    let mut server = Server { rig: None, replies };
    for line in requests.lines() {
        let request = serde_json::from_str(&line?).map_err(io::Error::other)?;
        server.answer(request)?;
    }
    Ok(())
}

struct Server<W> {
    rig: Option<Rig>,
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
        for (at, built) in built.into_iter().enumerate() {
            if plan.within.is_some_and(|within| begun.elapsed().as_secs_f64() > within) {
                break;
            }
            let trial = match built {
                Ok(executable) => {
                    self.say(&Reply::Running(at))?;
                    rig.measure(&executable, plan)
                }
                Err(trial) => trial,
            };
            self.say(&Reply::Done(at, trial))?;
        }
        self.rig = Some(rig);
        self.say(&Reply::End)
    }

    fn race(&mut self, schedules: &[String], samples: usize, time: f64) -> io::Result<()> {
        let Some(rig) = &mut self.rig else {
            return self.say(&Reply::Failed("no task is open".to_owned()));
        };
        let built: Result<Vec<Executable>, Trial> = built(rig, schedules).into_iter().collect();
        let options = Options {
            samples,
            time: Duration::from_secs_f64(time),
            warm_up_calls: 2,
            warm_up_time: Duration::from_millis(5),
            cap: Duration::from_secs_f64(20.0 * time),
            flush_caches: None,
        };
        let reply = match built {
            Err(trial) => Reply::Failed(trial.outcome.to_string()),
            Ok(built) => match rig.race(&built, &options) {
                Ok(samples) => Reply::Raced(samples),
                Err(error) => Reply::Failed(error.to_string()),
            },
        };
        self.say(&reply)
    }
}

/// Compiles schedules on all cores.
fn built(rig: &Rig, schedules: &[String]) -> Vec<Result<Executable, Trial>> {
    parallel::map(schedules, |text| read(text).and_then(|schedule| rig.build(&schedule)))
}

fn read(text: &str) -> Result<Schedule, Trial> {
    let parsed = parse(text);
    match parsed.has_errors() {
        true => Err(Trial::failed(Outcome::Illegal("its text cannot be read".to_owned()))),
        false => Ok(parsed.schedule),
    }
}
