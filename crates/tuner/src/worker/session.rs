//! Compiles, checks and measures the candidates of an open task inside the worker process
//! ([`Session`]).

use std::io;
use std::ops::ControlFlow;
use std::time::Instant;

use tilewright_runtime::RunError;
use tilewright_schedule::Schedule;
use tilewright_schedule::text::parse;

use super::protocol::Reply;
use crate::bench::{Bench, BoundReference, Plan, Rounds, Runner};
use crate::fixture::cpu::{CpuBuilder, CpuSite};
use crate::fixture::gpu::{GpuBuilder, GpuSite};
use crate::fixture::{
    BuildFailure, Builder, ExecutableOf, ExecutionSite, Fixture, FixtureError, KernelBuilder,
};
use crate::note::Note;
use crate::parallel;
use crate::task::{ExecutionTarget, Task, host_cpu};
use tilewright_cache::outcome::{Effort, Outcome, Trial};

/// Sends a reply to the tuner.
pub(super) type SendReply<'a> = dyn FnMut(&Reply) -> io::Result<()> + 'a;

/// Whether the worker can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerState {
    /// The worker can continue.
    Usable,
    /// The device is unusable for this process. Another process can use it.
    DeviceLost,
}

impl WorkerState {
    fn after(error: &RunError) -> WorkerState {
        match error {
            RunError::Gpu(error) if error.is_sticky() => WorkerState::DeviceLost,
            _ => WorkerState::Usable,
        }
    }
}

/// An open task.
pub(super) trait Session {
    /// The notes on how results are compared, for the user.
    fn notes(&self) -> &[Note];

    /// Compiles schedules, checks their results, and measures them.
    fn try_batch(
        &mut self,
        schedules: &[String],
        plan: &Plan,
        send_reply: &mut SendReply<'_>,
    ) -> io::Result<WorkerState>;

    /// Measures schedules in turn.
    fn race(&mut self, schedules: &[String], rounds: Rounds) -> (Reply, WorkerState);
}

/// Opens a task on the CPU or on a device.
pub(super) fn open(task: &Task) -> Result<Box<dyn Session>, FixtureError> {
    match &task.target {
        ExecutionTarget::Cpu { threads, vectors } => {
            open_on::<CpuSite>(task, &CpuBuilder(host_cpu(*threads, vectors)?))
        }
        ExecutionTarget::Device { ordinal, gpu } => {
            open_on::<GpuSite>(task, &GpuBuilder::open(*ordinal, gpu)?)
        }
    }
}

fn open_on<S: ExecutionSite + 'static>(
    task: &Task,
    builder: &S::Builder,
) -> Result<Box<dyn Session>, FixtureError> {
    Ok(Box::new(OpenTask::<S> { fixture: Fixture::new(task, builder)?, reference: None }))
}

struct OpenTask<S: ExecutionSite> {
    fixture: Fixture<S>,
    /// The reference of the last batch, which is often that of the next one too.
    reference: Option<(String, ExecutableOf<S>)>,
}

/// A compiled schedule or the reason of the failure, with the seconds that compiling took.
type BuildResult<E> = (Result<E, BuildFailure>, f64);

impl<S: ExecutionSite> Session for OpenTask<S> {
    fn notes(&self) -> &[Note] {
        &self.fixture.notes
    }

    fn try_batch(
        &mut self,
        schedules: &[String],
        plan: &Plan,
        send_reply: &mut SendReply<'_>,
    ) -> io::Result<WorkerState> {
        let begun = Instant::now();
        let (kernel_builder, mut bench) = self.fixture.parts();
        build_reference(&mut self.reference, &kernel_builder, plan);
        let (mut is_first, mut bound_reference) = (true, None);
        let mut ended = Ok(WorkerState::Usable);
        let take = |at: usize, built: BuildResult<ExecutableOf<S>>| {
            if plan.batch_limit.is_some_and(|within| begun.elapsed().as_secs_f64() > within) {
                return ControlFlow::Break(());
            }
            if std::mem::take(&mut is_first)
                && let (Some((_, executable)), Some(reference)) = (&self.reference, &plan.reference)
            {
                bound_reference = bench.bind_reference(executable, reference.seconds).ok();
            }
            ended = try_candidate(
                &kernel_builder,
                &mut bench,
                at,
                built,
                plan,
                bound_reference.as_mut(),
                send_reply,
            );
            match ended {
                Ok(WorkerState::Usable) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        for_each_built(&kernel_builder, schedules, take);
        ended
    }

    fn race(&mut self, schedules: &[String], rounds: Rounds) -> (Reply, WorkerState) {
        let (kernel_builder, mut bench) = self.fixture.parts();
        let built = parallel::map(schedules, |text| build(&kernel_builder, text).0);
        match built.into_iter().collect::<Result<Vec<_>, BuildFailure>>() {
            Err(BuildFailure::Failed(outcome)) => (Reply::Failed(outcome.to_string()), WorkerState::Usable),
            Err(BuildFailure::DeviceLost(why)) => (Reply::Failed(why), WorkerState::DeviceLost),
            Ok(built) => match bench.race(&built, rounds) {
                Ok(samples) => (Reply::Raced(samples), WorkerState::Usable),
                Err(error) => (Reply::Failed(error.to_string()), WorkerState::after(&error)),
            },
        }
    }
}

/// Compiles the reference of a plan, unless it is already compiled. If that fails, the batch runs
/// without a reference.
fn build_reference<B: Builder>(
    known: &mut Option<(String, B::Executable)>,
    kernel_builder: &KernelBuilder<'_, B>,
    plan: &Plan,
) {
    let wanted = plan.reference.as_ref().map(|reference| &reference.schedule);
    if known.as_ref().map(|(schedule, _)| schedule) != wanted {
        *known = wanted.and_then(|text| Some((text.clone(), build(kernel_builder, text).0.ok()?)));
    }
}

/// Compiles schedules on all cores, and passes them to `take`. If compiling would disturb
/// measurements, they are passed in their order after all are compiled. Otherwise each one is
/// passed at once.
fn for_each_built<B: Builder>(
    kernel_builder: &KernelBuilder<'_, B>,
    schedules: &[String],
    mut take: impl FnMut(usize, BuildResult<B::Executable>) -> ControlFlow<()>,
) {
    let work = |text: &String| build(kernel_builder, text);
    if kernel_builder.builder.can_compile_while_measuring() {
        return parallel::for_each_completed(schedules, work, take);
    }
    let built = parallel::map(schedules, work);
    let _ = built.into_iter().enumerate().try_for_each(|(at, built)| take(at, built));
}

fn build<B: Builder>(kernel_builder: &KernelBuilder<'_, B>, text: &str) -> BuildResult<B::Executable> {
    let begun = Instant::now();
    let built = parse_schedule(text).and_then(|schedule| kernel_builder.build(&schedule));
    (built, begun.elapsed().as_secs_f64())
}

/// Measures a candidate, and reports its trial.
fn try_candidate<R: Runner, B: Builder<Executable = R::Executable>>(
    kernel_builder: &KernelBuilder<'_, B>,
    bench: &mut Bench<'_, R>,
    at: usize,
    (built, compiling): BuildResult<R::Executable>,
    plan: &Plan,
    reference: Option<&mut BoundReference<R::Kernel>>,
    send_reply: &mut SendReply<'_>,
) -> io::Result<WorkerState> {
    let begun = Instant::now();
    let mut state = WorkerState::Usable;
    let mut trial = match built {
        // This candidate is not at fault. Another worker tries it again.
        Err(BuildFailure::DeviceLost(why)) => {
            eprintln!("{why}");
            return Ok(WorkerState::DeviceLost);
        }
        Err(BuildFailure::Failed(outcome)) => Trial::failed(outcome),
        Ok(executable) => {
            let measured = match bench.runner.bind(&executable) {
                Err(error) => Err(error),
                Ok(kernel) => {
                    send_reply(&Reply::Running(at))?;
                    bench.measure(&kernel, plan, reference)
                }
            };
            let trial = measured.unwrap_or_else(|error| {
                state = WorkerState::after(&error);
                Trial::failed(Outcome::Crashed(error.to_string()))
            });
            Trial { resources: kernel_builder.builder.resources(&executable), ..trial }
        }
    };
    trial.effort = Effort { compiling, measuring: begun.elapsed().as_secs_f64() };
    send_reply(&Reply::Done(at, trial))?;
    Ok(state)
}

fn parse_schedule(text: &str) -> Result<Schedule, BuildFailure> {
    let parsed = parse(text);
    match parsed.has_errors() {
        true => {
            let why = "the text of the schedule has syntax errors".to_owned();
            Err(BuildFailure::Failed(Outcome::Illegal(why)))
        }
        false => Ok(parsed.schedule),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use tilewright_ir::{LoopNest, Program};
    use tilewright_runtime::gpu::GpuError;
    use tilewright_runtime::{Buffer, BuildError};
    use tilewright_target::{Cpu, Target};

    use super::*;
    use crate::fixture::ProgramData;
    use crate::task::RecordedTask;

    /// A device that breaks for good when a schedule with a split is compiled, or one with an
    /// unrolled loop runs. Other kernels compute zeros at once.
    struct Fragile(FragileBuilder, Vec<Buffer>);

    #[derive(Clone)]
    struct FragileBuilder(Cpu);

    impl Builder for FragileBuilder {
        type Executable = bool;

        fn target(&self) -> Target<'_> {
            Target::Cpu(&self.0)
        }

        fn compile(&self, _: &Program, _: &LoopNest, schedule: &Schedule) -> Result<bool, BuildError> {
            let text = schedule.to_string();
            if text.contains("split") { Err(illegal_address().into()) } else { Ok(text.contains("unroll")) }
        }

        fn can_compile_while_measuring(&self) -> bool {
            true
        }
    }

    impl ExecutionSite for Fragile {
        type Builder = FragileBuilder;
        type Runner<'s> = FragileRunner<'s>;

        fn new(builder: &FragileBuilder, data: ProgramData<'_>) -> Result<Fragile, FixtureError> {
            Ok(Fragile(builder.clone(), data.results))
        }

        fn parts(&mut self) -> (&FragileBuilder, FragileRunner<'_>) {
            (&self.0, FragileRunner(&self.1))
        }
    }

    struct FragileRunner<'s>(&'s [Buffer]);

    impl Runner for FragileRunner<'_> {
        type Executable = bool;
        type Kernel = bool;

        const SHORTEST_CONCLUSIVE_CALL: f64 = 0.0;
        const SINGLE_CALL_SLACK: f64 = 1.0;
        const FURTHER_CALLS: usize = 1;
        const MOST_SAMPLES: usize = 10;
        const EMPTIES_CACHES: bool = true;

        fn bind(&self, breaks: &bool) -> Result<bool, RunError> {
            Ok(*breaks)
        }

        fn warm_up(&mut self, breaks: &bool) -> Result<(), RunError> {
            self.time_call(breaks).map(|_| ())
        }

        fn first_call(&mut self, breaks: &bool) -> Result<f64, RunError> {
            self.time_call(breaks)
        }

        fn longest_first_call(&self, _: f64, plan: &Plan) -> f64 {
            plan.first_call_limit
        }

        fn time_call(&mut self, breaks: &bool) -> Result<f64, RunError> {
            match breaks {
                false => Ok(1e-3),
                true => Err(illegal_address().into()),
            }
        }

        fn sample(&mut self, breaks: &bool) -> Result<f64, RunError> {
            self.time_call(breaks)
        }

        fn results(&mut self) -> Result<&[Buffer], RunError> {
            Ok(self.0)
        }
    }

    fn illegal_address() -> GpuError {
        let (name, text) = ("CUDA_ERROR_ILLEGAL_ADDRESS".to_owned(), String::new());
        GpuError::Driver { operation: "waiting for the device", name, text, sticky: true }
    }

    const PLAN: Plan = Plan {
        reference: None,
        best_seconds: 0.0,
        first_call_limit: 1.0,
        call_limit: 1.0,
        samples: 2,
        time: 0.0,
        batch_limit: None,
    };

    fn fragile() -> Box<dyn Session> {
        let cpu = Cpu { cores: 1, ..Cpu::host() };
        let task = RecordedTask {
            source: "def zero(float(N) x) -> (y) { y(i) = 0 * x(i) }".to_owned(),
            function: "zero".to_owned(),
            sizes: vec![("N".to_owned(), 4)],
            target: ExecutionTarget::cpu(&cpu),
            seed: 0,
            contract: true,
        };
        open_on::<Fragile>(&task.task().unwrap(), &FragileBuilder(cpu)).unwrap()
    }

    /// The state of the worker after a batch, and the replies.
    fn batch(session: &mut dyn Session, schedules: &[String]) -> (WorkerState, Vec<Reply>) {
        let mut said = Vec::new();
        let state = session.try_batch(schedules, &PLAN, &mut |reply| {
            said.push(reply.clone());
            Ok(())
        });
        (state.unwrap(), said)
    }

    #[test]
    fn a_device_that_is_lost_while_compiling_is_nobodys_fault() {
        let schedules = ["", "split y.i -> o, u:2"].map(str::to_owned);
        let (state, said) = batch(&mut *fragile(), &schedules);
        assert_eq!(state, WorkerState::DeviceLost);
        // The order of compilation decides which replies came before.
        assert!(matches!(said[..], [] | [Reply::Running(0), Reply::Done(0, _)]), "{said:?}");
    }

    #[test]
    fn a_device_that_is_lost_ends_the_batch_after_telling_who_did_it() {
        let schedules = ["", "unroll y.i"].map(str::to_owned);
        let mut session = fragile();
        let (state, said) = batch(&mut *session, &schedules);
        assert_eq!(state, WorkerState::DeviceLost);
        let (before, [Reply::Running(1), Reply::Done(1, broken)]) = said.split_at(said.len() - 2) else {
            panic!("{said:?}");
        };
        // The other candidate was done before, if it was compiled first.
        match before {
            [Reply::Running(0), Reply::Done(0, fine)] => {
                assert_eq!((&fine.outcome, fine.samples.len()), (&Outcome::Measured, 2));
            }
            _ => assert_eq!(before, []),
        }
        let words = "waiting for the device: CUDA_ERROR_ILLEGAL_ADDRESS".to_owned();
        assert_eq!(broken.outcome, Outcome::Crashed(words.clone()));
        let rounds = Rounds { samples: 2, time: 0.0, time_limit: 1.0 };
        assert_eq!(session.race(&schedules, rounds), (Reply::Failed(words), WorkerState::DeviceLost));
    }
}
