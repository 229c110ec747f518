//! Defines [`Element`]: the types of elements, how values of one type are written as another one,
//! and weighted means that stay in the type.

/// The type of the elements of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Float,
    Int32,
    Uint16,
    Uint8,
}

impl Element {
    /// The name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Element::Float => "float",
            Element::Int32 => "int32",
            Element::Uint16 => "uint16",
            Element::Uint8 => "uint8",
        }
    }

    /// The type in which a few values add up without wrapping.
    pub fn wide(self) -> Element {
        match self {
            Element::Uint8 => Element::Uint16,
            Element::Uint16 => Element::Int32,
            other => other,
        }
    }

    /// A value of this type as one of another type. Floats are from about 0 to 1.
    pub fn convert(self, value: &str, to: Element) -> String {
        match (self, to) {
            (one, other) if one == other => value.to_owned(),
            (Element::Float, Element::Uint8) => format!("uint8_sat({value} * 255)"),
            (Element::Float, Element::Uint16) => format!("uint16_sat({value} * 1023)"),
            (Element::Float, _) => format!("int({value} * 4096)"),
            (Element::Uint8, Element::Float) => format!("float({value}) * 0.00392"),
            (Element::Uint16, Element::Float) => format!("float({value}) * 0.00098"),
            (Element::Int32, Element::Float) => format!("float({value} & 4095) * 0.00024"),
            (Element::Uint16 | Element::Int32, Element::Uint8) => format!("uint8({value} & 255)"),
            (Element::Int32, Element::Uint16) => format!("uint16({value} & 1023)"),
            (_, other) => format!("{}({value})", other.name()),
        }
    }

    /// The weighted mean of values of this type. Weights are small integers, and add up to a power
    /// of two for integers.
    pub fn mean(self, values: &[String], weights: &[i64]) -> String {
        let total: i64 = weights.iter().sum();
        let term = |(value, weight): (&String, &i64)| {
            let value =
                if self.wide() == self { value.clone() } else { format!("{}({value})", self.wide().name()) };
            if *weight == 1 { value } else { format!("{weight} * {value}") }
        };
        let sum = values.iter().zip(weights).map(term).collect::<Vec<String>>().join(" + ");
        match self {
            Element::Float => format!("({sum}) * {:.5}", 1.0 / total.max(1) as f64),
            Element::Int32 => format!("({sum}) / {total}"),
            narrow => format!("{}(({sum} + {}) / {total})", narrow.name(), total / 2),
        }
    }
}
