//! The tuner's side of the protocol: starts worker processes and sends them requests.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use thiserror::Error;
use tilewright_target::GpuApi;

use super::protocol::{Reply, Request};
use super::stderr_tail::StderrTail;
use crate::bench::Plan;
use crate::note::Note;
use crate::task::{Place, Task};
use crate::tune::Stop;
use tilewright_cache::outcome::{Outcome, Trial, are_times};

/// The time limit for opening a task, which includes interpreting and compiling.
const OPENING: Duration = Duration::from_secs(300);
/// The time limit for compiling a batch.
const BUILDING: Duration = Duration::from_secs(60);
/// The least time limit of a running candidate.
const LEAST_DEADLINE: Duration = Duration::from_millis(500);
/// The least time limit on a GPU, whose first call may wait for another program's work.
const LEAST_ON_CUDA: Duration = Duration::from_secs(3);
/// The least time limit on an OpenCL device, which may compile a kernel at its first call.
const LEAST_ON_OPENCL: Duration = Duration::from_secs(20);
/// The time between two checks whether the run should end at once. It is long enough not to disturb
/// measurements.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// How to start a worker process: the front end's own program, with the arguments that make it a
/// worker.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// The arguments.
    pub arguments: Vec<String>,
    /// Additional environment variables, besides those of this process.
    pub variables: Vec<(String, String)>,
}

/// Why a worker was lost or could not be started.
#[derive(Debug, Error)]
pub enum Lost {
    /// The process cannot be started.
    #[error("the worker process cannot be started: {0}")]
    Start(io::Error),
    /// The worker cannot do the task.
    #[error("{0}")]
    Refused(String),
    /// The process ended.
    #[error("the worker process ended{0}")]
    Ended(String),
    /// The worker does not answer in time.
    #[error("the worker process does not answer")]
    Silent,
    /// The worker sent an invalid reply.
    #[error("the worker process said something that makes no sense")]
    Garbage,
    /// A recording has no such answer.
    #[error("{0}")]
    NotRecorded(String),
    /// The run has to end at once.
    #[error("the run was ended before anything was measured")]
    Hurried,
}

/// A worker process that has opened a task.
pub struct Worker {
    child: Child,
    requests: ChildStdin,
    replies: Receiver<Option<Reply>>,
    stderr_tail: StderrTail,
    stop: Arc<Stop>,
    least_deadline: Duration,
    /// The notes on how results are compared, for the user.
    pub notes: Vec<Note>,
}

impl Worker {
    /// Starts a process and opens a task.
    pub fn start(launch: &Launch, task: &Task, stop: &Arc<Stop>) -> Result<Worker, Lost> {
        let mut child = Command::new(&launch.program)
            .args(&launch.arguments)
            .envs(launch.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in a terminal is for the tuner only. The tuner ends the worker when it is
            // done.
            .process_group(0)
            .spawn()
            .map_err(Lost::Start)?;
        let missing = || Lost::Start(io::Error::other("it has no pipes"));
        let requests = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let stderr_tail = StderrTail::of(child.stderr.take().ok_or_else(missing)?);
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let reply = line.ok().and_then(|line| serde_json::from_str(&line).ok());
                let garbage = reply.is_none();
                if sender.send(reply).is_err() || garbage {
                    break;
                }
            }
        });
        let (stop, least_deadline) = (Arc::clone(stop), least_deadline(&task.place));
        let notes = Vec::new();
        let mut worker = Worker { child, requests, replies, stderr_tail, stop, least_deadline, notes };
        worker.say(&Request::Open(Box::new(task.clone())))?;
        match worker.hear(OPENING)? {
            Reply::Ready(notes) => {
                worker.notes = notes;
                Ok(worker)
            }
            Reply::Failed(why) => Err(Lost::Refused(why)),
            _ => Err(Lost::Garbage),
        }
    }

    /// Tries schedules. Calls `done` for every trial as soon as it is known. If the worker is lost,
    /// `done` also gets the trial of the candidate that was running. Schedules without a call of
    /// `done` were not tried.
    pub fn try_all(
        &mut self,
        schedules: &[String],
        plan: &Plan,
        done: &mut dyn FnMut(usize, Trial),
    ) -> Result<(), Lost> {
        self.say(&Request::Try { schedules: schedules.to_vec(), plan: plan.clone() })?;
        let longest = plan.longest().min(600.0);
        let deadline = self.least_deadline.max(Duration::from_secs_f64(longest));
        let mut running = None;
        let mut wait = BUILDING;
        loop {
            match self.hear(wait) {
                Ok(Reply::Running(at)) if at < schedules.len() => {
                    running = Some(at);
                    wait = deadline;
                }
                Ok(Reply::Done(at, trial)) if at < schedules.len() && trial.is_plausible() => {
                    running = None;
                    wait = BUILDING;
                    done(at, trial);
                }
                Ok(Reply::End) => return Ok(()),
                Ok(_) => return Err(self.blame(running, Lost::Garbage, done)),
                Err(lost) => return Err(self.blame(running, lost, done)),
            }
        }
    }

    /// Reports the candidate that was running as failed.
    fn blame(&mut self, running: Option<usize>, lost: Lost, done: &mut dyn FnMut(usize, Trial)) -> Lost {
        let outcome = match &lost {
            Lost::Hurried => return lost,
            Lost::Silent => Outcome::TimedOut,
            other => Outcome::Crashed(other.to_string()),
        };
        if let Some(at) = running {
            done(at, Trial::failed(outcome));
        }
        lost
    }

    /// Measures schedules in turn.
    pub fn race(&mut self, schedules: &[String], samples: usize, time: f64) -> Result<Vec<Vec<f64>>, Lost> {
        self.say(&Request::Race { schedules: schedules.to_vec(), samples, time })?;
        let longest = 30.0 * time * schedules.len().max(1) as f64;
        match self.hear(BUILDING + Duration::from_secs_f64(longest))? {
            Reply::Raced(times)
                if times.len() == schedules.len() && times.iter().all(|own| are_times(own)) =>
            {
                Ok(times)
            }
            Reply::Failed(why) => Err(Lost::Refused(why)),
            _ => Err(Lost::Garbage),
        }
    }

    fn say(&mut self, request: &Request) -> Result<(), Lost> {
        let line = serde_json::to_string(request).map_err(|error| Lost::Start(io::Error::other(error)))?;
        let said = writeln!(self.requests, "{line}").and_then(|()| self.requests.flush());
        said.map_err(|_| self.ended())
    }

    fn hear(&mut self, wait: Duration) -> Result<Reply, Lost> {
        let ends = Instant::now() + wait;
        loop {
            let left = ends.saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(left.min(BETWEEN_LOOKS)) {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => return Err(Lost::Garbage),
                Err(RecvTimeoutError::Timeout) if self.stop.is_urgent() => return Err(Lost::Hurried),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(Lost::Silent),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    /// The exit status of the process, and its last messages.
    fn ended(&mut self) -> Lost {
        // The pipe closes a moment before the process is gone.
        let mut how = String::new();
        for _ in 0..50 {
            if let Ok(Some(status)) = self.child.try_wait() {
                how = format!(" ({status})");
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        match self.stderr_tail.read().as_str() {
            "" => Lost::Ended(how),
            said => Lost::Ended(format!("{how}: {said}")),
        }
    }
}

fn least_deadline(place: &Place) -> Duration {
    match place.device().map(|gpu| gpu.api) {
        None => LEAST_DEADLINE,
        Some(GpuApi::Cuda) => LEAST_ON_CUDA,
        Some(GpuApi::OpenCl) => LEAST_ON_OPENCL,
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
