//! Where ours ends otherwise than the original, and why. Each is a row in `docs/reference/divergences.md`.

/// By `group/name`.
pub(crate) const DIFFERENT: &[(&str, &str)] = &[];
