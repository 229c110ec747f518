//! Loads of words: which words of memory hold the elements of all lanes, and their vector loads.

use std::ops::Range;

use tilewright_ir::nest::{Access, Scope};

use super::plan::Plan;
use super::{Lanes, Operation};
use crate::c_family::lane_vector::LaneVector;
use crate::c_family::lanes::{VectorLoop, access_at_lane};
use crate::c_family::stmt::{Emit, Emitter};

/// The numbers of words of one load, largest first.
const WIDTHS: [i64; 3] = [4, 2, 1];

/// Neighbouring elements of memory, one for each lane of a vector loop, or every second of them.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) lanes: Lanes,
    /// The distance of the elements of neighbouring lanes: 1 or 2.
    pub(super) step: i64,
    /// The number of elements before the first lane in its word of memory.
    shift: i64,
    /// The first elements of the words of memory. If words of lanes begin inside words of memory,
    /// there is one more word of memory.
    pub(super) words: Vec<Access>,
}

impl Window {
    /// Whether words of lanes are words of memory.
    pub(super) fn is_aligned(&self) -> bool {
        self.shift == 0 && self.step == 1
    }

    /// The number of elements that the words of lanes begin after those of memory. The elements of
    /// every second lane may also be the odd ones of their words.
    pub(super) fn joined_shift(&self) -> i64 {
        self.shift / self.step * self.step
    }

    /// The elements of every second lane in their words.
    pub(super) fn half(&self) -> Operation {
        if self.shift % 2 == 0 { Operation::Even } else { Operation::Odd }
    }
}

impl Emitter<'_> {
    /// The words of memory that hold the elements of an access, if the lanes are neighbours in
    /// memory that is not private to the thread, or every second of them.
    pub(super) fn window(&self, access: &Access, vector: VectorLoop) -> Option<Window> {
        let buffer = self.unit.nest.buffer(access.tensor);
        if buffer.scope != Scope::Shared && !self.unit.is_parameter(access.tensor) {
            return None;
        }
        let lanes = Lanes::of_elements(buffer.dtype)?;
        let is_whole_words = buffer.bytes() % i64::from(u32::BITS / 8) == 0;
        (0..lanes.per_word())
            .find_map(|shift| {
                // A word of memory that is only partly loaded must not end after its buffer.
                if shift != 0 && !is_whole_words {
                    return None;
                }
                let before = displaced(access, -shift);
                let end = vector.lanes + if shift == 0 { 0 } else { lanes.per_word() };
                let starts = (Range { start: 0, end }).step_by(lanes.per_word() as usize);
                let words = starts.map(|start| self.aligned(&before, vector.lane, start, lanes.per_word()));
                Some(Window { lanes, step: 1, shift, words: words.collect::<Option<Vec<Access>>>()? })
            })
            .or_else(|| self.every_second(access, vector, lanes).filter(|_| is_whole_words))
    }

    fn every_second(&self, access: &Access, vector: VectorLoop, lanes: Lanes) -> Option<Window> {
        if self.lane_step(access, vector.lane) != Some(2) {
            return None;
        }
        let first = access_at_lane(access, vector.lane, 0);
        let shift = (0..lanes.per_word())
            .find(|shift| self.begins_at_multiple(&displaced(&first, -shift), lanes.per_word()))?;
        let before = displaced(&first, -shift);
        let count = 2 * vector.lanes / lanes.per_word() + i64::from(shift > 1);
        let words = (0..count).map(|at| displaced(&before, at * lanes.per_word())).collect();
        Some(Window { lanes, step: 2, shift, words })
    }

    /// Loads the words of memory that a plan needs, each once, in accesses as wide as possible.
    pub(super) fn load_words(&mut self, plan: &Plan) -> Emit<()> {
        let mut needed: Vec<(Access, Lanes)> = Vec::new();
        plan.visit_loads(&mut |window| {
            for word in &window.words {
                if !needed.iter().any(|(other, _)| other == word) {
                    needed.push((word.clone(), window.lanes));
                }
            }
        });
        for width in WIDTHS {
            while let Some(words) =
                needed.iter().find_map(|word| self.neighbouring_words(word, width, &needed))
            {
                self.load_neighbouring_words(&words)?;
                needed.retain(|(word, _)| !words.contains(word));
            }
        }
        Ok(())
    }

    /// A word and the next ones, if one access loads them and all of them are needed.
    fn neighbouring_words(
        &self,
        (first, lanes): &(Access, Lanes),
        width: i64,
        needed: &[(Access, Lanes)],
    ) -> Option<Vec<Access>> {
        if width > 1 && !self.begins_at_multiple(first, width * lanes.per_word()) {
            return None;
        }
        let words = (0..width).map(|at| displaced(first, at * lanes.per_word()));
        let words: Vec<Access> = words.collect();
        let is_needed = |word: &Access| needed.iter().any(|(other, _)| other == word);
        words.iter().all(is_needed).then_some(words)
    }

    fn load_neighbouring_words(&mut self, words: &[Access]) -> Emit<()> {
        let vector = LaneVector::of_words(words.len() as i64);
        let name = self.lane_name(words[0].tensor, "words");
        let place = self.wide_element(&words[0], vector, "const ")?;
        let declaration = vector.declaration(self.unit.dialect, &name, Some(place.text()));
        self.line(&format!("const {declaration}"));
        let named = words.iter().enumerate().map(|(at, word)| (word.clone(), vector.element(&name, at)));
        self.lanes.add_words(named);
        Ok(())
    }
}

/// The access that is this number of elements further on in memory.
fn displaced(access: &Access, by: i64) -> Access {
    let mut access = access.clone();
    if let Some(last) = access.indices.last_mut() {
        *last = last.offset(by);
    }
    access
}
