//! Where every tensor is computed that others are computed from: temporaries, and results that are used again.

use tilewright_ir::{Program, Role, TensorId};
use tilewright_schedule::analysis::Stride;
use tilewright_schedule::{LoopName, Step};

use super::limits::Rejection;
use super::stage::{Stage, reads};
use super::tile::Levels;
use super::{Builder, KnobId};
use crate::knob::{Knob, Point};

/// The knob of one of them.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub tensor: String,
    /// The last statement that uses it.
    pub consumer: usize,
    knob: KnobId,
    choices: Vec<Choice>,
}

/// Where a tensor is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All of it, before it is used.
    Root,
    /// Anew at every use.
    Inline,
    /// Where its consumer is computed.
    WithConsumer,
    /// What the consumer's loops need from the outside in, as long as each needs another part of it: at the innermost of
    /// these, nothing is computed twice.
    Once,
    /// What the innermost of the consumer's outer loops needs.
    AtOuter,
    /// What the innermost of the consumer's block loops needs.
    AtBlock,
}

impl Choice {
    fn name(self) -> &'static str {
        match self {
            Choice::Root => "root",
            Choice::Inline => "inline",
            Choice::WithConsumer => "with-consumer",
            Choice::Once => "once",
            Choice::AtOuter => "at-outer",
            Choice::AtBlock => "at-block",
        }
    }
}

impl Placement {
    /// Adds a knob for every tensor that can be somewhere else than at the root.
    pub fn all(program: &Program, stages: &[Stage], builder: &mut Builder) -> Vec<Placement> {
        let tensors = (0..program.tensors.len()).map(|at| TensorId(at as u32));
        tensors.filter_map(|tensor| Placement::new(program, stages, tensor, builder)).collect()
    }

    fn new(
        program: &Program,
        stages: &[Stage],
        tensor: TensorId,
        builder: &mut Builder,
    ) -> Option<Placement> {
        let declared = program.tensor(tensor);
        let writers: Vec<&Stage> = stages.iter().filter(|stage| stage.name.tensor == declared.name).collect();
        let statements = program.statements();
        let users = || {
            let own = statements.iter().enumerate();
            own.filter(|(_, (statement, _))| statement.target != tensor && reads(&statement.value, tensor))
        };
        let consumer = users().map(|(at, _)| at).next_back()?;
        let moves = matches!(declared.role, Role::Temporary | Role::Output);
        if !moves || writers.iter().any(|writer| writer.ordered) {
            return None;
        }
        let mut choices = vec![Choice::Root];
        let temporary = declared.role == Role::Temporary;
        let pointwise = temporary && writers.len() == 1 && writers[0].busy(true).is_empty();
        choices.extend(pointwise.then_some(Choice::Inline));
        if !stages[consumer].ordered {
            choices.extend([Choice::WithConsumer, Choice::Once, Choice::AtOuter, Choice::AtBlock]);
        }
        let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
        let knob = builder.add(Knob::categorical(declared.name.clone(), names));
        Some(Placement { tensor: declared.name.clone(), consumer, knob, choices })
    }

    /// What was chosen.
    pub fn choice(&self, point: &Point) -> Choice {
        self.choices.get(point.choice(self.knob.0)).copied().unwrap_or(Choice::Root)
    }

    /// Sets the knob, where that is a choice.
    pub fn set(&self, choice: Choice, point: &mut Point) {
        let at = self.choices.iter().position(|own| *own == choice).unwrap_or(0);
        point.set_choice(self.knob.0, at);
    }

    /// Whether this is a choice.
    pub fn allows(&self, choice: Choice) -> bool {
        self.choices.contains(&choice)
    }

    /// The loop at which it is computed; none for the root. `levels` and `place` are those of the consumer, `stage`.
    pub fn place(
        &self,
        point: &Point,
        stage: &Stage,
        levels: &Levels,
        place: Option<&LoopName>,
    ) -> Result<Option<LoopName>, Rejection> {
        let found = match self.choice(point) {
            Choice::Root | Choice::Inline => return Ok(None),
            Choice::WithConsumer => return Ok(place.cloned()),
            Choice::Once => self.innermost_of_its_own(stage, levels),
            Choice::AtOuter => levels.outer.last(),
            Choice::AtBlock => levels.around_reduction(),
        };
        found.cloned().map(Some).ok_or(Rejection::NoPlace)
    }

    /// The innermost loop up to which all of the consumer's subscript it.
    fn innermost_of_its_own<'l>(&self, stage: &Stage, levels: &'l Levels) -> Option<&'l LoopName> {
        let operand = stage.operands.iter().find(|operand| operand.tensor == self.tensor)?;
        let moves = |places: &[usize]| places.iter().all(|at| operand.strides[*at] != Stride::Elements(0));
        let outer = levels.outer.iter().zip(&levels.outer_of);
        outer.take_while(|(_, places)| moves(places)).last().map(|(own, _)| own)
    }

    /// The step that computes it there.
    pub fn step(&self, at: &LoopName) -> Step {
        Step::ComputeAt { tensor: self.tensor.clone(), at: at.clone() }
    }
}
