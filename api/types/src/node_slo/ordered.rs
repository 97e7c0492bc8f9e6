//! Pairs of numbers of which one must be greater than the other.

use koord_resource::field::{Errors, Path};

/// A number of a strategy: its JSON name, and how it is read.
type Field<T> = (&'static str, fn(&T) -> Option<i64>);

/// Two numbers of one strategy of which the first must be greater.
///
/// A NodeSLO is checked where both are set, since one of them may be inherited. The webhook of the ConfigMap reads the
/// names alone.
pub struct Ordered<T> {
    /// The greater one.
    pub upper: Field<T>,
    /// The smaller one.
    pub lower: Field<T>,
}

/// Compares the pairs whose numbers are both set.
pub(super) fn check<T>(pairs: &[Ordered<T>], strategy: &T, at: &Path<'_>, errors: &mut Errors) {
    for Ordered { upper: (name, upper), lower: (lower_name, lower) } in pairs {
        if let (Some(upper), Some(lower)) = (upper(strategy), lower(strategy))
            && upper <= lower
        {
            errors.invalid(&at.child(name), upper, format!("must be greater than {lower_name}"));
        }
    }
}
