//! Arguments that make no plugin.

/// Why the plugin cannot be made of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    #[error("{field}: {error}")]
    Selector { field: &'static str, error: String },
    #[error("{field}: must be a whole number or a percentage such as `10%`")]
    WorkloadLimit { field: &'static str },
}
