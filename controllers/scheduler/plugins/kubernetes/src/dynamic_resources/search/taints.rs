//! Taints, which keep devices from requests that do not tolerate them: a device's own, and those of DeviceTaintRules.

use std::sync::Arc;

use koord_scheduler_framework::dynamic::{
    DeviceClass, DeviceTaint, DeviceTaintRule, DeviceToleration, ResourceSlice, Selector, TaintedDevices,
};

use super::{super::pools::Part, AllocationError, Scope};

/// The taints that rules give to each device of a slice.
pub(super) fn with_rules<'a>(
    part: &Arc<Part>,
    slice: &ResourceSlice,
    scope: Scope<'a>,
) -> Result<Vec<Vec<&'a DeviceTaint>>, AllocationError> {
    let mut tainted = vec![Vec::new(); slice.spec.devices.len()];
    for (rule_key, rule) in scope.objects.of::<DeviceTaintRule>() {
        let all = TaintedDevices::default();
        let of = rule.spec.device_selector.as_ref().unwrap_or(&all);
        let are = selected(of, part, slice, scope).map_err(|(index, error)| AllocationError::TaintRule {
            rule: rule_key.clone(),
            index,
            error,
        })?;
        for (taints, _) in tainted.iter_mut().zip(are).filter(|(_, is)| *is) {
            taints.push(&rule.spec.taint);
        }
    }
    Ok(tainted)
}

/// Which devices of a slice a rule selects. A device for which a selector fails is not selected. An error is that of a selector,
/// with its index, that does not compile.
fn selected(
    of: &TaintedDevices,
    part: &Arc<Part>,
    slice: &ResourceSlice,
    scope: Scope<'_>,
) -> Result<Vec<bool>, (usize, Arc<str>)> {
    let spec = &slice.spec;
    let is_meant =
        |required: &Option<Arc<str>>, name: &Arc<str>| required.as_ref().is_none_or(|required| required == name);
    if !is_meant(&of.driver, &spec.driver) || !is_meant(&of.pool, &spec.pool.name) {
        return Ok(Vec::new());
    }
    let class = match of.device_class_name.as_deref().map(|name| scope.objects.get::<DeviceClass>(name)) {
        Some(None) => return Ok(Vec::new()),
        class => class.flatten().map_or(&[][..], |class| &class.spec.selectors),
    };
    let mut are: Vec<bool> = spec.devices.iter().map(|device| is_meant(&of.device, &device.name)).collect();
    for (index, selector) in class.iter().enumerate().chain(of.selectors.iter().enumerate()) {
        let Selector { cel: Some(cel) } = selector else { continue };
        let answers = scope.selectors.answers(&cel.expression, part, slice);
        let answers = answers.map_err(|error| (index, error))?;
        for (is, answer) in are.iter_mut().zip(&*answers) {
            *is &= *answer == Ok(true);
        }
    }
    Ok(are)
}

pub(super) fn tolerates(tolerations: &[DeviceToleration], taint: &DeviceTaint) -> bool {
    let keeps_away = matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    let meets = |required: &str, actual: &str| required.is_empty() || required == actual;
    !keeps_away
        || tolerations.iter().any(|toleration| {
            let is_value = match toleration.operator.as_str() {
                "" | "Equal" => toleration.value == taint.value,
                operator => operator == "Exists",
            };
            meets(&toleration.effect, &taint.effect) && meets(&toleration.key, &taint.key) && is_value
        })
}
