//! Defines [`Breakdown`]: the predicted time of a loop nest and its named parts, which `show`
//! prints for the user.

/// A predicted time and its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakdown {
    /// The predicted seconds of a call.
    pub seconds: f64,
    /// The parts of this time, which overlap.
    pub groups: Vec<Group>,
}

/// Parts that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name and the seconds of the kernel that the parts belong to; none if the whole nest is
    /// one.
    pub kernel: Option<(String, f64)>,
    /// The name and the amount of each part.
    pub parts: Vec<(String, Quantity)>,
}

/// The amount of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A time in seconds.
    Seconds(f64),
    /// A share of a whole.
    Share(f64),
    /// Another amount, with its unit.
    Amount(String),
}
