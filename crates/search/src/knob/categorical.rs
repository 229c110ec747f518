//! Defines a domain (the possible values of a knob) of unordered names, for choices such as where
//! to place a buffer or whether to pack it.

/// A list of distinct names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Categorical(Vec<String>);

impl Categorical {
    /// Creates a domain of these names in the given order, without repetitions.
    pub fn new<C: Into<String>>(choices: impl IntoIterator<Item = C>) -> Categorical {
        let mut unique: Vec<String> = Vec::new();
        for choice in choices.into_iter().map(Into::into) {
            if !unique.contains(&choice) {
                unique.push(choice);
            }
        }
        Categorical(unique)
    }

    /// The names.
    pub fn choices(&self) -> &[String] {
        &self.0
    }

    pub(super) fn size(&self) -> u128 {
        self.0.len() as u128
    }

    /// Returns the indices of all other names: unordered names have no notion of distance.
    pub(super) fn neighbours(&self, at: usize) -> Vec<usize> {
        if at >= self.0.len() {
            return Vec::new();
        }
        (0..self.0.len()).filter(|&other| other != at).collect()
    }

    pub(super) fn width(&self) -> usize {
        self.0.len()
    }

    pub(super) fn features(&self, at: usize, features: &mut Vec<f32>) {
        features.extend((0..self.0.len()).map(|choice| if choice == at { 1.0 } else { 0.0 }));
    }
}
