//! `mon_data`: how much cache and bandwidth a group has.

use crate::{
    parse_error::ParseError,
    text::{Field, NUMBER, unsigned, unsigned_32},
};

/// The L3 cache that a folder of `mon_data` is of: 1 for `mon_L3_01`. `None` for other folders.
pub fn monitored_l3(folder: &str) -> Option<u32> {
    let mut parts = folder.split('_');
    let (kind, resource, number) = (parts.next()?, parts.next()?, parts.next()?);
    let is_l3 = kind == "mon" && resource == "L3" && parts.next().is_none();
    unsigned_32(number.as_bytes()).filter(|_| is_l3)
}

/// Reads `llc_occupancy`, `mbm_total_bytes` or `mbm_local_bytes`: bytes. `None` where the hardware has no number for now.
///
/// Fails where the text is neither a number nor `Unavailable`.
pub fn parse_monitored_value(file: &'static str, text: &[u8]) -> Result<Option<u64>, ParseError> {
    let text = text.trim_ascii();
    if text == b"Unavailable" {
        return Ok(None);
    }
    let field = Field { file, field: "value" };
    unsigned(text).map(Some).ok_or_else(|| field.malformed(text, NUMBER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_the_cache() {
        for (folder, cache) in [
            ("mon_L3_00", Some(0)),
            ("mon_L3_01", Some(1)),
            ("mon_L3_123", Some(123)),
            ("mon_sub_L3_00", None),
            ("mon_L3_00_x", None),
            ("mon_L2_00", None),
            ("mon_L3_", None),
            ("mon_L3", None),
            ("", None),
        ] {
            assert_eq!(monitored_l3(folder), cache, "{folder:?}");
        }
    }

    #[test]
    fn values_may_be_unavailable() {
        assert_eq!(parse_monitored_value("llc_occupancy", b"1048576\n"), Ok(Some(1_048_576)));
        assert_eq!(parse_monitored_value("llc_occupancy", b"Unavailable\n"), Ok(None));
        let error = parse_monitored_value("mbm_total_bytes", b"Error\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "mbm_total_bytes: value is \"Error\", not a number from 0 to 18446744073709551615"
        );
    }
}
