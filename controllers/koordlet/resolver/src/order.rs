//! The order in which the files of a pass are written.

use std::cmp::Reverse;

use koord_koordlet_framework::Target;
use koord_koordlet_system::{Nesting, Value};

/// A write that is to be done in a pass.
pub(crate) struct Step {
    pub(crate) target: Target,
    pub(crate) actual: Option<Value>,
    pub(crate) value: Value,
}

/// The order in which files are written.
pub(crate) fn ordered(steps: Vec<Step>) -> Vec<Step> {
    let depth = |step: &Step| step.target.cgroup().map_or(0, koord_koordlet_system::CgroupPath::depth);
    let (mut raised, mut lowered) = (Vec::new(), Vec::new());
    for step in steps {
        let resource = match &step.target {
            Target::Cgroup { resource, .. } => Some(*resource),
            Target::Disk { .. } | Target::System(_) => None,
        };
        if resource.is_none_or(|resource| resource.row().nesting == Nesting::Independent) {
            raised.push(step);
            continue;
        }
        match (&step.actual, &step.value) {
            (Some(Value::Cpus(actual)), Value::Cpus(wanted)) if !actual.is_subset(wanted) => {
                let union = actual.union(wanted);
                if union != *actual {
                    let value = Value::Cpus(union);
                    raised.push(Step { target: step.target.clone(), actual: step.actual.clone(), value });
                }
                lowered.push(step);
            }
            (Some(actual), value) if value.amount().zip(actual.amount()).is_some_and(|(new, old)| new < old) => {
                lowered.push(step);
            }
            _ => raised.push(step),
        }
    }
    // Limits of disks are lifted before others are set, as by the original.
    raised.sort_by_key(|step| (depth(step), !lifts(step)));
    lowered.sort_by_key(|step| Reverse(depth(step)));
    raised.extend(lowered);
    raised
}

/// Whether a step takes the limit of a disk away.
fn lifts(step: &Step) -> bool {
    matches!(&step.value, Value::Disk { text, .. } if matches!(&**text, "0" | ""))
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::{CgroupPath, Resource};

    use super::*;

    #[test]
    fn limits_of_disks_are_lifted_before_others_are_set() {
        let step = |disk: &str, text: &str| Step {
            target: Target::Disk {
                cgroup: CgroupPath::new("kubepods.slice"),
                resource: Resource::BlkioReadIops,
                disk: disk.into(),
            },
            actual: None,
            value: Value::Disk { disk: disk.into(), text: text.into() },
        };
        let steps = ordered(vec![step("253:0", "100"), step("253:16", "0"), step("253:32", "7")]);
        let values: Vec<String> = steps.iter().map(|step| step.value.to_string()).collect();
        assert_eq!(values, ["253:16 0", "253:0 100", "253:32 7"]);
    }
}
