//! Decides when the launches of a call are recorded, to be queued as one operation in later calls.
//!
//! Recording takes longer than launching, so the launches are recorded when a second call in a row
//! has the same arguments: the same addresses, and the same scalars. Calls with these arguments
//! replay the recording. A call with other arguments launches its kernels one by one.

use super::backend::Recording;
use super::bound::CallArguments;

/// The fewest and most launches that are worth recording.
const LEAST_LAUNCHES: usize = 2;
const MOST_LAUNCHES: usize = 4096;

/// The last arguments, and the launches that were recorded with them.
#[derive(Default)]
pub(super) struct Replay {
    arguments: Option<CallArguments>,
    recording: Option<Box<dyn Recording>>,
    /// Whether recording has failed, or is not worthwhile.
    is_off: bool,
}

/// How to queue the launches of a call.
pub(super) enum Plan<'a> {
    /// One by one.
    Launch,
    /// Record them first, and then replay the recording.
    Record,
    /// Replay what was recorded.
    Replay(&'a dyn Recording),
}

impl Replay {
    /// How to queue a call with these arguments.
    pub(super) fn plan(&mut self, arguments: &CallArguments) -> Plan<'_> {
        if self.is_off {
            return Plan::Launch;
        }
        if self.arguments.as_ref() != Some(arguments) {
            self.arguments = Some(arguments.clone());
            self.recording = None;
            return Plan::Launch;
        }
        match &self.recording {
            Some(recording) => Plan::Replay(&**recording),
            None => Plan::Record,
        }
    }

    /// Whether to record this number of launches. If not, no later call records either.
    pub(super) fn is_worthwhile(&mut self, launches: usize) -> bool {
        self.is_off = !(LEAST_LAUNCHES..=MOST_LAUNCHES).contains(&launches);
        !self.is_off
    }

    /// Keeps a recording for the arguments of the last plan; `None` if the device cannot record.
    pub(super) fn keep(&mut self, recording: Option<Box<dyn Recording>>) -> Option<&dyn Recording> {
        self.is_off = recording.is_none();
        self.recording = recording;
        self.recording.as_deref().map(|recording| recording as &dyn Recording)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::backend::{Address, Queue};
    use crate::gpu::error::GpuError;

    struct Nothing;

    impl Recording for Nothing {
        unsafe fn replay(&self, _: Queue) -> Result<(), GpuError> {
            Ok(())
        }
    }

    fn arguments(address: u64) -> CallArguments {
        CallArguments { inputs: [Address(address)].into_iter().collect(), ..CallArguments::default() }
    }

    fn name(plan: Plan<'_>) -> &'static str {
        match plan {
            Plan::Launch => "launch",
            Plan::Record => "record",
            Plan::Replay(_) => "replay",
        }
    }

    #[test]
    fn the_second_call_with_the_same_arguments_records() {
        let mut replay = Replay::default();
        assert_eq!(name(replay.plan(&arguments(1))), "launch");
        assert_eq!(name(replay.plan(&arguments(1))), "record");
        assert!(replay.is_worthwhile(2) && replay.keep(Some(Box::new(Nothing))).is_some());
        assert_eq!(name(replay.plan(&arguments(1))), "replay");
        // Other arguments need another recording, also where the first ones come back.
        assert_eq!(name(replay.plan(&arguments(2))), "launch");
        assert_eq!(name(replay.plan(&arguments(1))), "launch");
        assert_eq!(name(replay.plan(&arguments(1))), "record");
    }

    #[test]
    fn a_single_launch_is_never_recorded() {
        let mut replay = Replay::default();
        replay.plan(&arguments(1));
        assert_eq!(name(replay.plan(&arguments(1))), "record");
        assert!(!replay.is_worthwhile(1));
        assert_eq!(name(replay.plan(&arguments(1))), "launch");
    }

    #[test]
    fn a_device_that_cannot_record_is_asked_once() {
        let mut replay = Replay::default();
        replay.plan(&arguments(1));
        assert_eq!(name(replay.plan(&arguments(1))), "record");
        assert!(replay.is_worthwhile(3) && replay.keep(None).is_none());
        assert_eq!(name(replay.plan(&arguments(1))), "launch");
    }
}
