//! Adds the knobs that place producers: each knob selects where a tensor that other statements read
//! is computed ([`ProducerLocation`]).
//!
//! Such tensors are temporaries, and results that later statements use. For a tensor with several
//! statements, a second kind of knob places the statements before its last one.

use tilewright_ir::{Program, Role, TensorId};
use tilewright_schedule::{LoopName, Step};

use super::stage::{Stage, reads_tensor};
use super::{Builder, KnobId};
use crate::knob::{Knob, Point};

/// The knob that places one tensor.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub tensor: String,
    /// The index of the last statement that reads the tensor, or of the last one that updates it.
    pub consumer: usize,
    knob: KnobId,
    choices: Vec<ProducerLocation>,
}

/// Where a tensor is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProducerLocation {
    /// At the root: the whole tensor before its first use.
    Root,
    /// Recomputed at every use.
    Inline,
    /// At the same place as its consumer.
    WithConsumer,
    /// At the innermost outer loop of the consumer up to which every loop needs another part of the
    /// tensor, so that nothing is computed twice.
    Once,
    /// At the innermost outer loop of the consumer: the part that one iteration needs.
    AtOuter,
    /// At the innermost block loop of the consumer: the part that one iteration needs.
    AtBlock,
}

impl ProducerLocation {
    fn name(self) -> &'static str {
        match self {
            ProducerLocation::Root => "root",
            ProducerLocation::Inline => "inline",
            ProducerLocation::WithConsumer => "with-consumer",
            ProducerLocation::Once => "once",
            ProducerLocation::AtOuter => "at-outer",
            ProducerLocation::AtBlock => "at-block",
        }
    }
}

impl Placement {
    /// Adds a knob for every tensor that need not be computed at the root. `inside` lists the
    /// possible positions in the loops of a consumer.
    pub fn all(
        program: &Program,
        stages: &[Stage],
        inside: &[ProducerLocation],
        builder: &mut Builder,
    ) -> Vec<Placement> {
        let tensors = (0..program.tensors.len()).map(|at| TensorId(at as u32));
        tensors.filter_map(|tensor| Placement::new(program, stages, tensor, inside, builder)).collect()
    }

    fn new(
        program: &Program,
        stages: &[Stage],
        tensor: TensorId,
        inside: &[ProducerLocation],
        builder: &mut Builder,
    ) -> Option<Placement> {
        let declared = program.tensor(tensor);
        let writers: Vec<&Stage> = stages.iter().filter(|stage| stage.name.tensor == declared.name).collect();
        let statements = program.statements();
        let users = || {
            let own = statements.iter().enumerate();
            own.filter(|(_, (statement, _))| {
                statement.target != tensor && reads_tensor(&statement.value, tensor)
            })
        };
        let consumer = users().map(|(at, _)| at).next_back()?;
        let moves = matches!(declared.role, Role::Temporary | Role::Output);
        if !moves || writers.iter().any(|writer| writer.is_ordered) {
            return None;
        }
        let mut choices = vec![ProducerLocation::Root];
        let temporary = declared.role == Role::Temporary;
        let pointwise = temporary && writers.len() == 1 && writers[0].repeated_loops(true).is_empty();
        choices.extend(pointwise.then_some(ProducerLocation::Inline));
        if !stages[consumer].is_ordered {
            choices.extend(inside);
        }
        let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
        let knob = builder.add(Knob::categorical(declared.name.clone(), names));
        Some(Placement { tensor: declared.name.clone(), consumer, knob, choices })
    }

    /// Adds a knob for every tensor whose last statement can have the earlier statements of the
    /// tensor in its loops.
    pub fn earlier(
        program: &Program,
        stages: &[Stage],
        inside: ProducerLocation,
        builder: &mut Builder,
    ) -> Vec<Placement> {
        let mut found = Vec::new();
        for declared in
            program.tensors.iter().filter(|own| matches!(own.role, Role::Temporary | Role::Output))
        {
            let writers: Vec<usize> =
                (0..stages.len()).filter(|at| stages[*at].name.tensor == declared.name).collect();
            let [_, .., consumer] = writers[..] else { continue };
            let last = &stages[consumer];
            if writers.iter().any(|at| stages[*at].is_ordered)
                || last.scatters
                || last.repeated_loops(false).is_empty()
            {
                continue;
            }
            let choices = vec![ProducerLocation::Root, inside];
            let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
            let knob = builder.add(Knob::categorical(format!("{}.earlier", declared.name), names));
            found.push(Placement { tensor: declared.name.clone(), consumer, knob, choices });
        }
        found
    }

    /// Returns the steps that inline all tensors whose choice is `Inline`.
    pub fn inline_steps<'a>(all: &'a [Placement], point: &'a Point) -> impl Iterator<Item = Step> + 'a {
        let inlined = all.iter().filter(|own| own.choice(point) == ProducerLocation::Inline);
        inlined.map(|own| Step::Inline { tensor: own.tensor.clone() })
    }

    /// The position that the point selects.
    pub fn choice(&self, point: &Point) -> ProducerLocation {
        self.choices.get(point.choice(self.knob.0)).copied().unwrap_or(ProducerLocation::Root)
    }

    /// Sets the knob to `choice`, or to the first choice if the knob does not have `choice`.
    pub fn set(&self, choice: ProducerLocation, point: &mut Point) {
        let at = self.choices.iter().position(|own| *own == choice).unwrap_or(0);
        point.set_choice(self.knob.0, at);
    }

    /// Returns true when the knob has this choice.
    pub fn allows(&self, choice: ProducerLocation) -> bool {
        self.choices.contains(&choice)
    }

    /// The step that computes the tensor at the loop `at`.
    pub fn step(&self, at: &LoopName) -> Step {
        Step::ComputeAt { tensor: self.tensor.clone(), at: at.clone(), storage: None }
    }
}
