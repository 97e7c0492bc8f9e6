//! One value of several constraints.

use koord_koordlet_framework::{Bound, Constraint, Precedence, Reason};
use koord_koordlet_system::Value;
use koord_scheduling::CpuSet;

/// A constraint with the strategy that wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub strategy: &'static str,
    pub bound: Bound,
    pub value: Value,
    pub precedence: Precedence,
    pub reason: Reason,
}

/// The value of a file, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub value: Value,
    /// The strategy whose value it is.
    pub strategy: &'static str,
    pub reason: Reason,
    /// The strategy whose bound changed that value, with its reason.
    pub bounded_by: Option<(&'static str, Reason)>,
}

impl Wanted {
    pub(crate) fn new(strategy: &'static str, constraint: Constraint) -> Self {
        let Constraint { bound, value, precedence, reason, .. } = constraint;
        Self { strategy, bound, value, precedence, reason }
    }
}

/// The value that follows from all constraints of a file: the exact value of the highest precedence, within all bounds. Of equal precedence the strategy that
/// comes first wins. `None` when no constraint wants an exact value, and the bounds hold for what the file says already.
pub fn decide(wanted: &[Wanted], actual: Option<&Value>) -> Option<Decision> {
    let mut exact: Option<&Wanted> = None;
    for candidate in wanted.iter().filter(|wanted| wanted.bound == Bound::Exactly) {
        if exact.is_none_or(|best| candidate.precedence > best.precedence) {
            exact = Some(candidate);
        }
    }
    let mut decision = match (exact, actual) {
        (Some(exact), _) => Some(Decision {
            value: exact.value.clone(),
            strategy: exact.strategy,
            reason: exact.reason.clone(),
            bounded_by: None,
        }),
        (None, _) => None,
    };
    for bound in wanted.iter().filter(|wanted| wanted.bound != Bound::Exactly) {
        let Some(current) = decision.as_ref().map(|decision| &decision.value).or(actual) else { continue };
        let Some(value) = bounded(current, bound) else { continue };
        decision = Some(match decision {
            Some(decision) => Decision { value, bounded_by: Some((bound.strategy, bound.reason.clone())), ..decision },
            None => Decision { value, strategy: bound.strategy, reason: bound.reason.clone(), bounded_by: None },
        });
    }
    decision
}

/// The value within a bound; `None` when it is within already, or the bound is of another kind.
fn bounded(current: &Value, bound: &Wanted) -> Option<Value> {
    match (current, &bound.value, bound.bound) {
        (Value::Cpus(current), Value::Cpus(limit), Bound::AtMost) => {
            let within: CpuSet = current.intersection(limit);
            (within != *current).then_some(Value::Cpus(within))
        }
        (Value::Cpus(current), Value::Cpus(limit), Bound::AtLeast) => {
            let with = current.union(limit);
            (with != *current).then_some(Value::Cpus(with))
        }
        (current, limit, kind) => {
            let is_outside = match kind {
                Bound::AtMost => current.amount()? > limit.amount()?,
                Bound::AtLeast => current.amount()? < limit.amount()?,
                Bound::Exactly => false,
            };
            is_outside.then(|| limit.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(strategy: &'static str, bound: Bound, amount: i64, precedence: Precedence) -> Wanted {
        Wanted { strategy, bound, value: Value::limit(amount), precedence, reason: Reason::new("test", "") }
    }

    #[test]
    fn three_strategies_on_one_file_make_one_value() {
        use Bound::{AtLeast, AtMost, Exactly};
        use Precedence::{Default, Measured, Specified};
        let batch = wanted("BatchResource", Exactly, 200_000, Specified);
        let burst = wanted("CPUBurst", Exactly, 260_000, Measured);
        let recover = wanted("CPUSuppress", Exactly, -1, Default);
        let at_most = wanted("CPUSuppress", AtMost, 150_000, Measured);
        let at_least = wanted("minimum", AtLeast, 210_000, Measured);
        for (constraints, value, strategy, bounded_by) in [
            (vec![&batch], 200_000, "BatchResource", None),
            (vec![&recover, &batch], 200_000, "BatchResource", None),
            (vec![&batch, &burst, &recover], 260_000, "CPUBurst", None),
            (vec![&batch, &burst, &at_most], 150_000, "CPUBurst", Some("CPUSuppress")),
            (vec![&batch, &at_least], 210_000, "BatchResource", Some("minimum")),
            (vec![&recover], -1, "CPUSuppress", None),
        ] {
            let constraints: Vec<Wanted> = constraints.into_iter().cloned().collect();
            let decision = decide(&constraints, None).unwrap();
            assert_eq!(decision.value, Value::limit(value));
            assert_eq!((decision.strategy, decision.bounded_by.map(|bound| bound.0)), (strategy, bounded_by));
        }
    }

    #[test]
    fn a_bound_alone_holds_for_what_the_file_says() {
        let at_most = wanted("CPUSuppress", Bound::AtMost, 150_000, Precedence::Measured);
        let decided = |actual: i64| decide(std::slice::from_ref(&at_most), Some(&Value::limit(actual)));
        assert_eq!(decided(100_000), None);
        assert_eq!(decided(-1).unwrap().value, Value::Amount(150_000));
        assert_eq!(decide(&[at_most], None), None);
    }

    #[test]
    fn bounds_of_cpus_are_sets() {
        let cpus = |text: &str| Value::Cpus(text.parse().unwrap());
        let mut exact = wanted("a", Bound::Exactly, 0, Precedence::Specified);
        exact.value = cpus("0-7");
        let mut only = wanted("b", Bound::AtMost, 0, Precedence::Measured);
        only.value = cpus("4-11");
        assert_eq!(decide(&[exact, only], None).unwrap().value, cpus("4-7"));
    }
}
