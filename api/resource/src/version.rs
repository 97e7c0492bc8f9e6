//! The order of API versions.

/// Orders API versions as Kubernetes does: released before beta before alpha, then by number.
///
/// A greater rank is a version that clients prefer. A name that follows no pattern ranks below all others.
pub fn version_rank(version: &str) -> (u8, u32, u32) {
    let Some(digits) = version.strip_prefix('v') else { return (0, 0, 0) };
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let (major, rest) = digits.split_at(end);
    let Ok(major) = major.parse::<u32>() else { return (0, 0, 0) };
    let number = |text: &str| text.parse::<u32>().ok();
    match rest {
        "" => (3, major, 0),
        _ => match (rest.strip_prefix("beta").and_then(number), rest.strip_prefix("alpha").and_then(number)) {
            (Some(minor), _) => (2, major, minor),
            (None, Some(minor)) => (1, major, minor),
            (None, None) => (0, 0, 0),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::version_rank;

    #[test]
    fn released_versions_come_first() {
        let mut versions = ["v1alpha1", "v10", "v2beta1", "v1", "v11beta2", "v1beta1", "foo1"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        assert_eq!(versions, ["v10", "v1", "v11beta2", "v2beta1", "v1beta1", "v1alpha1", "foo1"]);
    }
}
