//! Finds other places for a stage of a scheduled program, and predicts the time with each of them.
//!
//! The steps before the first one that concerns the stage are applied, then the steps of the other
//! place, then the rest of the schedule. Steps that no longer apply are left out, and the default
//! schedule fills in what is missing. If such a step decides about the place of another stage, that
//! stage is computed at the root instead, and the alternative says so.
//!
//! Only the nests that the other place affects are lowered and estimated anew ([`Affected`]).

use std::collections::BTreeSet;

use tilewright_ir::{Program, TensorId};
use tilewright_schedule::partial::{Choice, Freedom, NestId, PartialSchedule, Place, Placement, StageId};
use tilewright_schedule::{Illegal, StatementName, Step};

use super::{Alternative, Decision, RefusedPlace};
use crate::cost::CostModel;

/// A schedule that can be applied again with other decisions.
pub(super) struct Replay<'a, 'm> {
    program: &'a Program,
    steps: &'m [Step],
    model: &'m dyn CostModel,
    /// The program without steps, and with all of them.
    open: PartialSchedule<'a>,
    whole: PartialSchedule<'a>,
    /// The predicted seconds of each nest of the whole schedule; an error if one of them cannot be
    /// lowered alone.
    costs: Result<Vec<(NestId, f64)>, Illegal>,
}

/// The steps of the schedule, from `start` up to and without `end`, that another decision replaces.
struct Moment {
    start: usize,
    end: usize,
}

/// The part of a program that another place for a stage affects.
struct Affected {
    /// The nests of the whole schedule.
    nests: Vec<NestId>,
    /// The statements of the program in these nests, as positions and names. Copies that steps
    /// have added are among the names.
    statements: BTreeSet<usize>,
    names: BTreeSet<StatementName>,
}

impl<'a, 'm> Replay<'a, 'm> {
    /// Applies all steps once.
    pub fn new(
        program: &'a Program,
        open: PartialSchedule<'a>,
        steps: &'m [Step],
        model: &'m dyn CostModel,
    ) -> Result<Self, Illegal> {
        let whole = open.with(steps)?;
        let cost = |nest| Ok((nest, done_cost(&whole, nest, &[], model)?));
        let costs = whole.nests().into_iter().map(cost).collect();
        Ok(Replay { program, steps, model, open, whole, costs })
    }

    /// The statements that write a tensor, by their positions in the program.
    pub fn statements_of(&self, tensor: &str) -> Vec<usize> {
        let writes = |id: TensorId| self.program.tensor(id).name == tensor;
        let all = self.program.statements().into_iter().enumerate();
        all.filter(|(_, (own, _))| writes(own.target)).map(|(at, _)| at).collect()
    }

    /// Where a statement is computed.
    pub fn place(&self, statement: usize) -> Place {
        self.whole.place(statement).unwrap_or(Place::Root)
    }

    /// The reason for the place of a stage. `seconds` is the predicted time of the whole program.
    pub fn decision(&self, stage: StageId, seconds: f64) -> Result<Decision, Illegal> {
        let tensor = self.open.name(stage);
        let own = self.statements_of(tensor);
        let place = place_in(&self.whole, &own);
        let mut comparison = Comparison { found: Vec::new(), refused: Vec::new() };
        let moments = self.moments(tensor);
        let before = self.open.with(&self.steps[..moments[0].start])?;
        let forced = before.freedom(stage);
        if matches!((forced, &place), (Freedom::NoReaders | Freedom::InsideLoop, Place::Root))
            || matches!((forced, &place), (Freedom::ReadOnce, Place::Inlined))
        {
            return Ok(Decision::Forced(forced));
        }
        for moment in moments {
            let before = self.open.with(&self.steps[..moment.start])?;
            let mut choices = before.choices(stage);
            if choices.iter().all(|choice| choice.placement != Placement::Root) {
                choices.push(Choice { placement: Placement::Root, next: before.clone() });
            }
            for choice in choices {
                let other = self.compare(&own, &before, &choice, &moment, seconds);
                match (self.is_taken(&choice, &moment, &place), other) {
                    (false, Ok(other)) => comparison.add(other),
                    (false, Err(why)) => {
                        comparison.refuse(RefusedPlace { place: place_in(&choice.next, &own), why });
                    }
                    (true, Ok(other)) if other.is_faster_than(seconds) => {
                        comparison.add(Alternative { is_own_place: true, ..other });
                    }
                    (true, _) => {}
                }
            }
            if let Err(why) = before.with(&[before.inline(stage)]) {
                comparison.refuse(RefusedPlace { place: Place::Inlined, why });
            }
        }
        Ok(comparison.decision())
    }

    /// Whether the schedule takes a choice: its next steps are those of the choice, or the choice
    /// has none and the stage is at the root.
    fn is_taken(&self, choice: &Choice, moment: &Moment, place: &Place) -> bool {
        let steps = choice.next.steps();
        match steps.len() > moment.start {
            true => self.steps.starts_with(steps),
            false => *place == Place::Root,
        }
    }

    /// The moments at which another decision about a tensor can be taken: at the step that places
    /// it, and before the steps that divide the loops of its host. If no step places it, there is
    /// one moment before the first step that concerns it.
    fn moments(&self, tensor: &str) -> Vec<Moment> {
        let concerns = |step: &Step| {
            step.placed_tensor() == Some(tensor)
                || step.staged_tensor() == Some(tensor)
                || step.loops().iter().any(|name| name.statement.tensor == tensor)
        };
        let first = self.steps.iter().position(concerns).unwrap_or(self.steps.len());
        let placing = self.steps.get(first).filter(|step| step.placed_tensor() == Some(tensor));
        let Some(placing) = placing else { return vec![Moment { start: first, end: first }] };
        let host = placing.loops().first().map(|name| &name.statement);
        let divides_host = |step: &&Step| {
            let loops = step.loops();
            step.placed_tensor().is_none()
                && step.staged_tensor().is_none()
                && loops.iter().all(|name| Some(&name.statement) == host)
        };
        let group = self.steps[..first].iter().rev().take_while(divides_host).count();
        let late = Moment { start: first, end: first + 1 };
        let early = (group > 0).then_some(Moment { start: first - group, end: first + 1 });
        std::iter::once(late).chain(early).collect()
    }

    /// Predicts the time of the whole program with another choice. `seconds` is that of the
    /// schedule as it is.
    fn compare(
        &self,
        own: &[usize],
        before: &PartialSchedule<'a>,
        choice: &Choice<'a>,
        moment: &Moment,
        seconds: f64,
    ) -> Result<Alternative, Illegal> {
        let steps = choice.next.steps()[moment.start..].to_vec();
        let place = place_in(&choice.next, own);
        let affected = self.affected(own, &choice.next, before);
        let changed = self.changed_statements(own, &steps);
        // Loops that were divided for one place can be a bad choice for another.
        let kept = self.rest_applied(&choice.next, moment.end, &affected, &changed, false);
        let anew = self.rest_applied(&choice.next, moment.end, &affected, &changed, true);
        let cost = |outcome: &Outcome| Ok((outcome.cost(&affected, self.model)?, outcome.displaced.clone()));
        let (cost, displaced) = match (cost(&kept), cost(&anew)) {
            (Ok(one), Ok(other)) => {
                if one.0 <= other.0 {
                    one
                } else {
                    other
                }
            }
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => one,
            (Err(why), Err(_)) => return Err(why),
        };
        let costs = match &self.costs {
            Ok(costs) => costs,
            Err(why) => return Err(why.clone()),
        };
        let all: f64 = costs.iter().map(|(_, cost)| cost).sum();
        let now = costs.iter().filter(|(nest, _)| affected.nests.contains(nest)).map(|(_, cost)| cost);
        let now: f64 = now.sum();
        Ok(Alternative {
            place,
            is_own_place: false,
            steps,
            displaced,
            seconds: seconds * (all - now + cost) / all,
        })
    }

    /// The statements of a stage, and those whose loops a decision divides.
    fn changed_statements(&self, own: &[usize], decision: &[Step]) -> BTreeSet<StatementName> {
        let own = own.iter().filter_map(|at| self.open.statement_name(*at).cloned());
        let dividing = decision.iter().filter(|step| step.placed_tensor().is_none());
        own.chain(dividing.flat_map(Step::loops).map(|name| name.statement.clone())).collect()
    }

    /// The nests that a decision affects: those of the schedule that have a statement of the stage,
    /// or one whose nest the decision changes.
    fn affected(&self, own: &[usize], next: &PartialSchedule, before: &PartialSchedule) -> Affected {
        let changed = next.changed_nests(before);
        let all = 0..self.program.statements().len();
        let is_changed =
            |at: &usize| own.contains(at) || next.nest_of(*at).is_some_and(|nest| changed.contains(&nest));
        let seeds: Vec<usize> = all.clone().filter(is_changed).collect();
        // The readers of an inlined statement may be anywhere.
        let is_local = seeds.iter().all(|at| own.contains(at) || self.place(*at) != Place::Inlined);
        let is_affected =
            |nest: &NestId| !is_local || seeds.iter().any(|at| self.whole.nest_of(*at) == Some(*nest));
        let nests: Vec<NestId> = self.whole.nests().into_iter().filter(is_affected).collect();
        let is_inside = |at: &usize| {
            own.contains(at) || self.whole.nest_of(*at).is_some_and(|nest| nests.contains(&nest))
        };
        let statements: BTreeSet<usize> = all.filter(is_inside).collect();
        let names = statements.iter().filter_map(|at| self.open.statement_name(*at).cloned());
        let added = nests.iter().flat_map(|nest| self.whole.statements_in(*nest));
        let names = names.chain(added).collect();
        Affected { nests, statements, names }
    }

    /// Applies the steps from `rest` on after a decision. With `anew`, the loops of the changed
    /// statements are left to the default schedule.
    fn rest_applied(
        &self,
        decided: &PartialSchedule<'a>,
        rest: usize,
        affected: &Affected,
        changed: &BTreeSet<StatementName>,
        anew: bool,
    ) -> Outcome<'a> {
        let (mut next, mut displaced) = (decided.clone(), Vec::new());
        let mut open = if anew { changed.clone() } else { BTreeSet::new() };
        let (mut divided, mut unfinished) = (BTreeSet::new(), BTreeSet::new());
        for step in self.steps[rest..].iter().filter(|step| self.concerns(step, affected)) {
            let statements: BTreeSet<StatementName> =
                step.loops().into_iter().map(|name| name.statement.clone()).collect();
            let placed = step.placed_tensor();
            if placed.is_none() && !statements.is_empty() && statements.is_subset(&open) {
                continue;
            }
            match (next.with(std::slice::from_ref(step)), placed) {
                (Ok(applied), placed) => {
                    next = applied;
                    divided.extend(statements.into_iter().filter(|_| placed.is_none()));
                }
                (Err(_), Some(tensor)) => {
                    displaced.push(tensor.to_owned());
                    let own = self.statements_of(tensor).into_iter();
                    open.extend(own.filter_map(|at| self.open.statement_name(at).cloned()));
                }
                (Err(_), None) => unfinished.extend(statements),
            }
        }
        open.extend(changed.difference(&divided).cloned());
        open.extend(unfinished);
        Outcome { schedule: next, displaced, open: open.into_iter().collect() }
    }

    /// Whether a step may concern an affected statement. A statement that a step has added may have
    /// any name.
    fn concerns(&self, step: &Step, affected: &Affected) -> bool {
        let all = 0..self.program.statements().len();
        let is_elsewhere = |name: &StatementName| {
            !affected.names.contains(name) && all.clone().any(|at| self.open.statement_name(at) == Some(name))
        };
        let loops = step.loops();
        loops.is_empty() || !loops.iter().all(|name| is_elsewhere(&name.statement))
    }
}

/// Where a schedule computes the last statement of a stage.
fn place_in(schedule: &PartialSchedule, own: &[usize]) -> Place {
    own.last().and_then(|last| schedule.place(*last)).unwrap_or(Place::Root)
}

/// A schedule with another decision.
struct Outcome<'a> {
    schedule: PartialSchedule<'a>,
    /// The tensors that are computed at the root, because the steps that place them do not apply.
    displaced: Vec<String>,
    /// The statements whose loops are left to the default schedule.
    open: Vec<StatementName>,
}

impl Outcome<'_> {
    /// The predicted time of the nests that have an affected statement.
    fn cost(&self, affected: &Affected, model: &dyn CostModel) -> Result<f64, Illegal> {
        let mut nests: Vec<NestId> = Vec::new();
        for nest in affected.statements.iter().filter_map(|at| self.schedule.nest_of(*at)) {
            if !nests.contains(&nest) {
                nests.push(nest);
            }
        }
        nests.into_iter().map(|nest| done_cost(&self.schedule, nest, &self.open, model)).sum()
    }
}

/// The predicted time of a nest. Its loops stay as they are, except those of the `open` statements.
fn done_cost(
    partial: &PartialSchedule,
    nest: NestId,
    open: &[StatementName],
    model: &dyn CostModel,
) -> Result<f64, Illegal> {
    let mut done = partial.statements_in(nest);
    done.retain(|name| !open.contains(name));
    Ok(model.estimate(&partial.lower_nest_with(nest, &done)?).seconds)
}

/// The other places of a stage.
struct Comparison {
    found: Vec<Alternative>,
    refused: Vec<RefusedPlace>,
}

impl Comparison {
    /// Adds an alternative. Of those with the same description, the fastest is kept.
    fn add(&mut self, new: Alternative) {
        match self.found.iter_mut().find(|own| own.to_string() == new.to_string()) {
            Some(own) if own.seconds <= new.seconds => {}
            Some(own) => *own = new,
            None => self.found.push(new),
        }
    }

    /// Adds a refused place, unless one like it is there already.
    fn refuse(&mut self, new: RefusedPlace) {
        if !self.refused.iter().any(|own| own.place == new.place) {
            self.refused.push(new);
        }
    }

    /// The comparison, fastest first. A place that is possible in some way is not refused.
    fn decision(mut self) -> Decision {
        self.found.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        let found = &self.found;
        self.refused.retain(|refused| found.iter().all(|own| own.place != refused.place));
        Decision::Compared { alternatives: self.found, refused: self.refused }
    }
}
