//! What the amounts of one quota must be, whatever its tree looks like.

use koord_resource::{Quantity, ResourceList, admission::Denial, go_json};
use koord_types::quota::{MAX_STRICT_CHECK_RESOURCE_KEYS, SHARED_WEIGHT};

use crate::advice;

/// The amounts of a quota, and the annotations that are about them.
#[derive(Clone, Copy, Debug)]
pub struct Amounts<'a> {
    pub name: &'a str,
    /// What it gets in any case.
    pub min: &'a ResourceList,
    /// What it gets at most.
    pub max: &'a ResourceList,
    /// What its pods use.
    pub used: &'a ResourceList,
    /// The annotation with its weights.
    pub shared_weight: Option<&'a str>,
    /// The annotation with the resources whose `max` must not be below what is used.
    pub strict_keys: Option<&'a str>,
}

/// Refuses amounts that contradict each other.
pub fn check_amounts(quota: &Amounts<'_>) -> Result<(), Denial> {
    let Amounts { name, min, max, used, shared_weight, .. } = *quota;
    let refuse = |message: String, advice| Err(Denial::bad_request(message).advise(advice));
    if let Some(negative) = negatives(max) {
        return refuse(format!("{name} quota.Spec.Max's value < 0, in dimensions :{negative}"), advice::NEGATIVE_MAX);
    }
    if let Some(negative) = negatives(min) {
        return refuse(format!("{name} quota.Spec.Min's value < 0, in dimensions :{negative}"), advice::NEGATIVE_MIN);
    }
    if let Some(text) = shared_weight.filter(|text| !text.is_empty()) {
        let weights: ResourceList = serde_json::from_str::<Option<ResourceList>>(text)
            .map_err(|error| Denial::bad_request(go_json::reason(text, &error)).advise(advice::WEIGHTS))?
            .unwrap_or_default();
        if let Some(negative) = negatives(&weights) {
            let annotation = SHARED_WEIGHT.name();
            return refuse(
                format!("{name} quota.Annotation[{annotation}]'s value < 0, in dimension :{negative}"),
                advice::WEIGHTS,
            );
        }
    }
    for (key, promised) in min {
        match max.get(key) {
            None => {
                let message =
                    format!("resourceKey {key} of quota {name} is included in min, which is not included in max");
                return refuse(message, advice::MIN_WITHOUT_MAX);
            }
            Some(bound) if promised > bound => {
                return refuse(
                    format!("resourceKey {key} of quota {name} min {promised} > max {bound}"),
                    advice::MIN_OVER_MAX,
                );
            }
            Some(_) => {}
        }
    }
    for key in strict_keys(quota)? {
        let Some(in_use) = used.get(&key) else { continue };
        match max.get(&key) {
            None => {
                let message = format!(
                    "resourceKey {key} of quota {name} is included in used, which is not included in max but should check max >= used"
                );
                return refuse(message, advice::MAX_BELOW_USED);
            }
            Some(bound) if bound < in_use => {
                return refuse(
                    format!("resourceKey {key} of quota {name} max {bound} < used {in_use}"),
                    advice::MAX_BELOW_USED,
                );
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The resources with negative amounts, as Go prints a list.
fn negatives(amounts: &ResourceList) -> Option<String> {
    let negative: Vec<&str> =
        amounts.iter().filter(|(_, quantity)| Quantity::is_negative(quantity)).map(|(name, _)| name).collect();
    (!negative.is_empty()).then(|| format!("[{}]", negative.join(" ")))
}

fn strict_keys(quota: &Amounts<'_>) -> Result<Vec<String>, Denial> {
    let text = quota.strict_keys.unwrap_or_default();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let keys = serde_json::from_str::<Option<Vec<String>>>(text).map_err(|error| {
        let (name, annotation, reason) =
            (quota.name, MAX_STRICT_CHECK_RESOURCE_KEYS.name(), go_json::reason(text, &error));
        Denial::bad_request(format!("{name} quota.Annotation[{annotation}]'s value is invalid: {reason}"))
            .advise(advice::STRICT_KEYS)
    })?;
    Ok(keys.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use koord_resource::{Validate as _, quantity::Format};
    use koord_types::elastic_quota::{ElasticQuota, ElasticQuotaSpec, ElasticQuotaStatus};
    use proptest::{collection::btree_map, prelude::*, sample::select};

    use super::*;

    fn amounts() -> impl Strategy<Value = ResourceList> {
        let amounts = btree_map(select(vec!["cpu", "memory", "pods"]), -1_i64..3, 0..3);
        amounts.prop_map(|amounts| {
            amounts
                .into_iter()
                .map(|(name, value)| (name.to_owned(), Quantity::new(value, Format::DecimalSI)))
                .collect()
        })
    }

    proptest! {
        /// The texts of this module are the original's, and the type says the same in its own words.
        #[test]
        fn what_is_refused_here_breaks_a_rule_of_the_type_and_nothing_else_does(
            min in amounts(), max in amounts(), used in amounts(),
            shared_weight in select(vec![None, Some(""), Some("null"), Some("{}"), Some(r#"{"cpu":"1"}"#), Some(r#"{"cpu":"-1"}"#), Some("x"), Some("[]")]),
            strict_keys in select(vec![None, Some(""), Some("null"), Some("[]"), Some(r#"["cpu","pods"]"#), Some("cpu"), Some("{}")]),
        ) {
            let checked = check_amounts(&Amounts { name: "q", min: &min, max: &max, used: &used, shared_weight, strict_keys });
            let keys = [(SHARED_WEIGHT.name(), shared_weight), (MAX_STRICT_CHECK_RESOURCE_KEYS.name(), strict_keys)];
            let texts = keys.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.to_owned())));
            let mut quota = ElasticQuota {
                spec: ElasticQuotaSpec { min, max },
                status: ElasticQuotaStatus { used },
                ..ElasticQuota::default()
            };
            quota.metadata.annotations = Some(texts.collect::<BTreeMap<_, _>>());
            let errors = quota.validate();
            prop_assert_eq!(checked.is_err(), !errors.is_empty(), "{:?} {}", checked, errors);
        }
    }
}
