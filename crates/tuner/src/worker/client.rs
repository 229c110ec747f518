//! Starts worker processes, sends them requests, and reads their replies: the tuner's side of
//! the protocol ([`Worker`]).

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
use crate::task::{ExecutionTarget, Task};
use crate::tune::Stop;
use tilewright_cache::outcome::{Outcome, Trial, are_times};

/// The time limit for opening a task, which includes interpreting and compiling.
const OPEN_TIMEOUT: Duration = Duration::from_secs(300);
/// The time limit for compiling a batch.
const BUILD_TIMEOUT: Duration = Duration::from_secs(60);
/// The least time limit of a running candidate.
const LEAST_DEADLINE: Duration = Duration::from_millis(500);
/// The least time limit on a GPU, whose first call may wait for another program's work.
const LEAST_DEADLINE_ON_CUDA: Duration = Duration::from_secs(3);
/// The least time limit on an OpenCL device, which may compile a kernel at its first call.
const LEAST_DEADLINE_ON_OPENCL: Duration = Duration::from_secs(20);
/// The time between two checks whether the run should end at once. It is long enough not to disturb
/// measurements.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How to start a worker process: the front end's own program, with the arguments that make it a
/// worker.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// The arguments.
    pub arguments: Vec<String>,
    /// Additional environment variables, besides those of this process.
    pub variables: Vec<(String, String)>,
}

/// Why a worker was lost or could not be started.
#[derive(Debug, Error)]
pub enum WorkerError {
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
    #[error("the worker process did not answer within its time limit")]
    NoAnswer,
    /// The worker sent an invalid reply.
    #[error("the worker process sent an invalid reply")]
    InvalidReply,
    /// A recording has no such answer.
    #[error("{0}")]
    NotRecorded(String),
    /// The run has to end at once.
    #[error("the run was stopped while it waited for the worker process")]
    Stopped,
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
    pub fn start(launch: &WorkerCommand, task: &Task, stop: &Arc<Stop>) -> Result<Worker, WorkerError> {
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
            .map_err(WorkerError::Start)?;
        let missing = || WorkerError::Start(io::Error::other("it has no pipes"));
        let requests = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let stderr_tail = StderrTail::start_reading(child.stderr.take().ok_or_else(missing)?);
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
        let (stop, least_deadline) = (Arc::clone(stop), least_deadline(&task.target));
        let notes = Vec::new();
        let mut worker = Worker { child, requests, replies, stderr_tail, stop, least_deadline, notes };
        worker.send(&Request::Open(Box::new(task.clone())))?;
        match worker.receive(OPEN_TIMEOUT)? {
            Reply::Ready(notes) => {
                worker.notes = notes;
                Ok(worker)
            }
            Reply::Failed(why) => Err(WorkerError::Refused(why)),
            _ => Err(WorkerError::InvalidReply),
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
    ) -> Result<(), WorkerError> {
        self.send(&Request::Try { schedules: schedules.to_vec(), plan: plan.clone() })?;
        let longest = plan.longest_trial().min(600.0);
        let deadline = self.least_deadline.max(Duration::from_secs_f64(longest));
        let mut running = None;
        let mut wait = BUILD_TIMEOUT;
        loop {
            match self.receive(wait) {
                Ok(Reply::Running(at)) if at < schedules.len() => {
                    running = Some(at);
                    wait = deadline;
                }
                Ok(Reply::Done(at, trial)) if at < schedules.len() && trial.is_plausible() => {
                    running = None;
                    wait = BUILD_TIMEOUT;
                    done(at, trial);
                }
                Ok(Reply::End) => return Ok(()),
                Ok(_) => return Err(self.report_failure(running, WorkerError::InvalidReply, done)),
                Err(lost) => return Err(self.report_failure(running, lost, done)),
            }
        }
    }

    /// Reports the candidate that was running as failed.
    fn report_failure(
        &mut self,
        running: Option<usize>,
        lost: WorkerError,
        done: &mut dyn FnMut(usize, Trial),
    ) -> WorkerError {
        let outcome = match &lost {
            WorkerError::Stopped => return lost,
            WorkerError::NoAnswer => Outcome::TimedOut,
            other => Outcome::Crashed(other.to_string()),
        };
        if let Some(at) = running {
            done(at, Trial::failed(outcome));
        }
        lost
    }

    /// Measures schedules in turn.
    pub fn race(
        &mut self,
        schedules: &[String],
        samples: usize,
        time: f64,
    ) -> Result<Vec<Vec<f64>>, WorkerError> {
        self.send(&Request::Race { schedules: schedules.to_vec(), samples, time })?;
        let longest = 30.0 * time * schedules.len().max(1) as f64;
        match self.receive(BUILD_TIMEOUT + Duration::from_secs_f64(longest))? {
            Reply::Raced(times)
                if times.len() == schedules.len() && times.iter().all(|own| are_times(own)) =>
            {
                Ok(times)
            }
            Reply::Failed(why) => Err(WorkerError::Refused(why)),
            _ => Err(WorkerError::InvalidReply),
        }
    }

    fn send(&mut self, request: &Request) -> Result<(), WorkerError> {
        let line =
            serde_json::to_string(request).map_err(|error| WorkerError::Start(io::Error::other(error)))?;
        let said = writeln!(self.requests, "{line}").and_then(|()| self.requests.flush());
        said.map_err(|_| self.exit_error())
    }

    fn receive(&mut self, wait: Duration) -> Result<Reply, WorkerError> {
        let ends = Instant::now() + wait;
        loop {
            let left = ends.saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(left.min(POLL_INTERVAL)) {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => return Err(WorkerError::InvalidReply),
                Err(RecvTimeoutError::Timeout) if self.stop.is_urgent() => return Err(WorkerError::Stopped),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(WorkerError::NoAnswer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.exit_error()),
            }
        }
    }

    /// The exit status of the process, and its last messages.
    fn exit_error(&mut self) -> WorkerError {
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
            "" => WorkerError::Ended(how),
            said => WorkerError::Ended(format!("{how}: {said}")),
        }
    }
}

fn least_deadline(place: &ExecutionTarget) -> Duration {
    match place.device().map(|gpu| gpu.api) {
        None => LEAST_DEADLINE,
        Some(GpuApi::Cuda) => LEAST_DEADLINE_ON_CUDA,
        Some(GpuApi::OpenCl) => LEAST_DEADLINE_ON_OPENCL,
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
