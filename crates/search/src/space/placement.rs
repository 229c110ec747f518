//! Where every tensor is computed that others are computed from: temporaries, and results that are used again; and where
//! the first statements of a tensor are computed that a later one changes.

use tilewright_ir::{Program, Role, TensorId};
use tilewright_schedule::{LoopName, Step};

use super::stage::{Stage, reads};
use super::{Builder, KnobId};
use crate::knob::{Knob, Point};

/// The knob of one of them.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub tensor: String,
    /// The last statement that uses it, or changes it.
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
    /// `inside`: the places in a consumer's loops that there are.
    pub fn all(
        program: &Program,
        stages: &[Stage],
        inside: &[Choice],
        builder: &mut Builder,
    ) -> Vec<Placement> {
        let tensors = (0..program.tensors.len()).map(|at| TensorId(at as u32));
        tensors.filter_map(|tensor| Placement::new(program, stages, tensor, inside, builder)).collect()
    }

    fn new(
        program: &Program,
        stages: &[Stage],
        tensor: TensorId,
        inside: &[Choice],
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
            choices.extend(inside);
        }
        let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
        let knob = builder.add(Knob::categorical(declared.name.clone(), names));
        Some(Placement { tensor: declared.name.clone(), consumer, knob, choices })
    }

    /// Adds a knob for every tensor whose last statement can have those before it in its loops.
    pub fn earlier(
        program: &Program,
        stages: &[Stage],
        inside: Choice,
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
            if writers.iter().any(|at| stages[*at].ordered) || last.scatters || last.busy(false).is_empty() {
                continue;
            }
            let choices = vec![Choice::Root, inside];
            let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
            let knob = builder.add(Knob::categorical(format!("{}.earlier", declared.name), names));
            found.push(Placement { tensor: declared.name.clone(), consumer, knob, choices });
        }
        found
    }

    /// The steps for all that are computed anew at every use.
    pub fn inlined<'a>(all: &'a [Placement], point: &'a Point) -> impl Iterator<Item = Step> + 'a {
        let inlined = all.iter().filter(|own| own.choice(point) == Choice::Inline);
        inlined.map(|own| Step::Inline { tensor: own.tensor.clone() })
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

    /// The step that computes it there.
    pub fn step(&self, at: &LoopName) -> Step {
        Step::ComputeAt { tensor: self.tensor.clone(), at: at.clone() }
    }
}
