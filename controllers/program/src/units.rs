//! Amounts as people read them. Programs get them exactly, with `-o json` or `-o yaml`.

use koord_resource::Quantity;

const UNITS: [(&str, u64); 6] =
    [("Ei", 1 << 60), ("Pi", 1 << 50), ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];

/// An amount of a resource: plain bytes in binary units, everything else as it is written.
pub fn amount(resource: &str, amount: &Quantity) -> String {
    let text = amount.to_string();
    let is_plain = text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    if is_plain && counts_bytes(resource) { bytes(amount.value()) } else { text }
}

/// Bytes in the largest binary unit of which there is at least one, with two decimals where it is no whole number.
pub fn bytes(bytes: i64) -> String {
    let magnitude = bytes.unsigned_abs();
    let sign = if bytes < 0 { "-" } else { "" };
    let Some((unit, size)) = UNITS.iter().find(|(_, size)| magnitude >= *size) else { return bytes.to_string() };
    let hundredths = (u128::from(magnitude) * 100 + u128::from(*size) / 2) / u128::from(*size);
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    format!("{sign}{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Whether a resource is counted in bytes, by its name.
fn counts_bytes(resource: &str) -> bool {
    let name = resource.rsplit('/').next().unwrap_or(resource);
    name.ends_with("memory") || name.ends_with("storage") || name.starts_with("hugepages-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_binary_units() {
        for (number, text) in [
            (412_316_860_416, "384Gi"),
            (120_000_000_000, "111.76Gi"),
            (1_610_612_736, "1.5Gi"),
            (1023, "1023"),
            (0, "0"),
            (-2048, "-2Ki"),
            (i64::MAX, "8Ei"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn only_plain_bytes_change_their_unit() {
        for (resource, written, shown) in [
            ("kubernetes.io/batch-memory", "412316860416", "384Gi"),
            ("memory", "40Gi", "40Gi"),
            ("memory", "100G", "100G"),
            ("kubernetes.io/batch-cpu", "47000", "47k"),
            ("koordinator.sh/gpu-memory-ratio", "100", "100"),
            ("ephemeral-storage", "2048", "2Ki"),
        ] {
            assert_eq!(amount(resource, &written.parse().unwrap()), shown, "{resource} {written}");
        }
    }
}
