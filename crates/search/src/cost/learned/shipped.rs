//! The trained models that come with Tilewright. `scripts/train_models.sh` makes them.

/// The text of the weights for a kind of machines, if there are any.
pub fn shipped_weights(family: &str) -> Option<&'static str> {
    match family {
        "avx512" => Some(include_str!("../../../weights/avx512.json")),
        "avx2" => Some(include_str!("../../../weights/avx2.json")),
        "sm_90" => Some(include_str!("../../../weights/sm_90.json")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::learned::Weights;

    #[test]
    fn weights_belong_to_this_version_and_to_their_machines() {
        for family in ["avx512", "avx2", "sm_90"] {
            let weights = shipped_weights(family).map(Weights::parse);
            assert!(weights.is_some_and(|own| own.is_ok_and(|own| own.family == family)), "{family}");
        }
        assert!(shipped_weights("sm_20").is_none());
    }
}
