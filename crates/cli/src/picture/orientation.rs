//! Finds the orientation that the Exif data of a photo states. Photos of telephones are stored as
//! the sensor saw them, and viewers turn them.

/// The tag of the orientation.
const ORIENTATION: u16 = 274;

/// The orientation in Exif data, which has the form of a TIFF file: 1 is upright, and 2 to 8 are
/// turned or mirrored. `None` if the data states none.
pub fn of_exif(data: &[u8]) -> Option<u16> {
    let is_little_endian = match data.get(..2)? {
        b"II" => true,
        b"MM" => false,
        _ => return None,
    };
    let number = |at: usize| {
        let bytes = data.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if is_little_endian { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    // The first list of tags begins in these data: they have less than 64 KiB.
    let first = if is_little_endian { number(4)? } else { number(6)? };
    let first = usize::from(first);
    let entries = usize::from(number(first)?);
    // An entry has 12 bytes: the tag, the type, the number of values, and a value.
    let entry = (0..entries).map(|at| first + 2 + 12 * at).find(|at| number(*at) == Some(ORIENTATION))?;
    number(entry + 8).filter(|orientation| (1..=8).contains(orientation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orientations_are_found_in_either_order_of_bytes() {
        let little =
            b"II*\0\x08\0\0\0\x02\0\x00\x01\x03\0\x01\0\0\0\x05\0\0\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
        assert_eq!(of_exif(little), Some(6));
        let big = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03\0\0";
        assert_eq!(of_exif(big), Some(3));
        // Without the tag, with a value that means nothing, cut short, and with a false offset.
        assert_eq!(of_exif(&little[..22]), None);
        assert_eq!(of_exif(b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x09\0\0"), None);
        assert!((0..big.len() - 2).all(|length| of_exif(&big[..length]).is_none()));
        assert_eq!(of_exif(b"II*\0\xff\xff\xff\xff\x01\0"), None);
    }
}
