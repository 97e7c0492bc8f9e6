//! The annotation that lists for the node which batch resources each container was given.
//!
//! The container runtime does not get extended resources, so the node's agent reads them from here.

use std::{borrow::Cow, collections::BTreeMap};

use koord_resource::{admission::Denial, go_json};
use koord_types::{
    pod_annotations::{
        EXTENDED_RESOURCE_SPEC, ExtendedResourceContainerSpec, ExtendedResourceSpec, WrittenAmounts, WrittenQuantity,
    },
    protocol::Text as _,
    resource_names::{BATCH_CPU, BATCH_MEMORY},
};
use serde::Serialize;

use crate::{
    pod::{Container, Parts},
    resources::{Amount, Amounts},
};

#[derive(Serialize)]
struct ExtendedResources<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    containers: BTreeMap<&'a str, OfContainer<'a>>,
}

#[derive(Serialize)]
struct OfContainer<'a> {
    #[serde(skip_serializing_if = "OfList::is_empty")]
    limits: OfList<'a>,
    #[serde(skip_serializing_if = "OfList::is_empty")]
    requests: OfList<'a>,
}

/// The batch resources of one list, in the order of their names.
#[derive(Serialize)]
struct OfList<'a> {
    #[serde(rename = "kubernetes.io/batch-cpu", skip_serializing_if = "Option::is_none")]
    cpu: Option<Cow<'a, Amount<'a>>>,
    #[serde(rename = "kubernetes.io/batch-memory", skip_serializing_if = "Option::is_none")]
    memory: Option<Cow<'a, Amount<'a>>>,
}

impl<'a> OfList<'a> {
    fn of(amounts: &'a Amounts<'a>) -> Self {
        Self { cpu: amounts.canonical(BATCH_CPU), memory: amounts.canonical(BATCH_MEMORY) }
    }

    fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.memory.is_none()
    }

    /// Whether the annotation has a list, be it empty, with the same amounts in the same form.
    fn is_said_by(&self, written: Option<&WrittenAmounts>) -> bool {
        let Some(written) = written else { return false };
        let amounts = [(BATCH_CPU, &self.cpu), (BATCH_MEMORY, &self.memory)];
        let mut amounts = amounts.into_iter().filter_map(|(name, amount)| Some((name, amount.as_ref()?)));
        written.len() == amounts.clone().count()
            && amounts.all(|(name, amount)| {
                let said = written.get(name);
                said.is_some_and(|said| amount.has_form(said.as_ref().map(WrittenQuantity::as_str)))
            })
    }
}

impl ExtendedResources<'_> {
    /// Whether the annotation says the same. QUIRK: a container has both lists, and where there is no container there is
    /// no map of them; what is absent or `null` differs from what is empty (`what_is_absent_differs_from_what_is_empty`).
    fn is_said_by(&self, written: &ExtendedResourceSpec) -> bool {
        let Some(containers) = &written.containers else { return self.containers.is_empty() };
        !self.containers.is_empty()
            && containers.len() == self.containers.len()
            && self.containers.iter().all(|(name, of)| {
                containers.get(*name).is_some_and(|ExtendedResourceContainerSpec { limits, requests }| {
                    of.limits.is_said_by(limits.as_ref()) && of.requests.is_said_by(requests.as_ref())
                })
            })
    }
}

/// Brings the annotation up to date. One that says the same stays as somebody wrote it.
pub(super) fn annotate(pod: &mut Parts<'_>) -> Result<(), Denial> {
    let mut wanted = ExtendedResources { containers: BTreeMap::new() };
    for Container { name, resources, .. } in &pod.spec.containers {
        let of = OfContainer { limits: OfList::of(&resources.limits), requests: OfList::of(&resources.requests) };
        if !(of.limits.is_empty() && of.requests.is_empty()) {
            wanted.containers.insert(name.as_ref(), of);
        }
    }
    let current = pod.metadata.annotations.get(EXTENDED_RESOURCE_SPEC.name()).map(ExtendedResourceSpec::read);
    let current = current.transpose();
    // Who creates the pod has written it, so it is their mistake and not ours.
    let current = current.map_err(|reason| {
        Denial::bad_request(format!("failed to get current extended resource spec, err: {reason}"))
    })?;
    if !wanted.is_said_by(&current.unwrap_or_default()) {
        let text = go_json::to_string(&wanted)?;
        pod.metadata.annotations.set(EXTENDED_RESOURCE_SPEC.name(), text);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pod::{Pod, mutate::translate::translate};

    /// The annotation of a pod with one container, before and after.
    fn annotated(resources: &Value, annotation: Option<&str>) -> Option<String> {
        let metadata = json!({"annotations": {EXTENDED_RESOURCE_SPEC.name(): annotation}});
        let metadata = if annotation.is_some() { metadata } else { json!({}) };
        let pod = json!({"metadata": metadata, "spec": {"containers": [{"name": "main", "resources": resources}]}})
            .to_string();
        let mut pod = Pod::read_text(&pod).unwrap();
        annotate(&mut pod).unwrap();
        pod.metadata.annotations.get(EXTENDED_RESOURCE_SPEC.name()).map(str::to_owned)
    }

    #[test]
    fn an_annotation_stays_where_its_amounts_have_the_form_that_go_keeps() {
        let said = |amount: &str| {
            format!(
                r#"{{"containers": {{"main": {{"limits": {{}}, "requests": {{"kubernetes.io/batch-cpu": {amount}}}}}}}}}"#
            )
        };
        for (requested, amount, stays) in [
            ("1000", r#""+1000""#, true),
            ("1000", "1000", true),
            ("1000", r#""1k""#, false),
            ("500", r#""500""#, true),
            ("500", r#""+500""#, false),
            ("0.5", r#"".5""#, true),
        ] {
            let text = said(amount);
            let after = annotated(&json!({"requests": {BATCH_CPU: requested}}), Some(&text)).unwrap();
            assert_eq!(after == text, stays, "{requested} {amount}: {after}");
        }
        let text = said("null");
        for (requested, stays) in [(Value::Null, true), (json!("0"), false)] {
            let after = annotated(&json!({"requests": {BATCH_CPU: requested}}), Some(&text)).unwrap();
            assert_eq!(after == text, stays, "{after}");
        }
    }

    #[test]
    fn computed_amounts_have_the_form_of_texts_that_go_does_not_keep() {
        for (milli, stays) in [(1000, true), (500, false)] {
            let text = format!(
                r#"{{"containers": {{"main": {{"limits": {{}}, "requests": {{"kubernetes.io/batch-cpu": "{milli}"}}}}}}}}"#
            );
            let metadata = json!({"annotations": {EXTENDED_RESOURCE_SPEC.name(): text}});
            let container = json!({"name": "main", "resources": {"requests": {"cpu": format!("{milli}m")}}});
            let pod = json!({"metadata": metadata, "spec": {"priority": 5500, "containers": [container]}}).to_string();
            let mut pod = Pod::read_text(&pod).unwrap();
            translate(&mut pod);
            annotate(&mut pod).unwrap();
            let after = pod.metadata.annotations.get(EXTENDED_RESOURCE_SPEC.name()).unwrap();
            assert_eq!(after == text, stays, "{milli}: {after}");
        }
    }

    #[test]
    fn what_is_absent_differs_from_what_is_empty() {
        let cpu = json!({BATCH_CPU: "1000"});
        let requests = r#"{"containers":{"main":{"requests":{"kubernetes.io/batch-cpu":"1k"}}}}"#;
        let said = |lists: &str| format!(r#"{{"containers": {{"main": {lists}}}}}"#);
        let of_cpu = r#"{"kubernetes.io/batch-cpu": "1000"}"#;
        for (lists, stays) in [
            (format!(r#"{{"requests": {of_cpu}}}"#), false),
            (format!(r#"{{"requests": {of_cpu}, "limits": null}}"#), false),
            (format!(r#"{{"requests": {of_cpu}, "limits": {{}}}}"#), true),
            (format!(r#"{{"Requests": {of_cpu}, "LIMITS": {{}}}}"#), true),
            (format!(r#"{{"requests": {{}}, "requests": {of_cpu}, "limits": {{}}}}"#), true),
            (r#"{"requests": {"kubernetes.io/batch-cpu": 1000}, "limits": {}}"#.to_owned(), true),
            (r#"{"requests": {"kubernetes.io/batch-cpu": "1k"}, "limits": {}}"#.to_owned(), false),
            (format!(r#"{{"requests": {of_cpu}, "limits": {of_cpu}}}"#), false),
            ("null".to_owned(), false),
        ] {
            let text = said(&lists);
            let after = annotated(&json!({"requests": cpu}), Some(&text)).unwrap();
            assert_eq!(after, if stays { text.as_str() } else { requests }, "{lists}");
        }
        for (text, after) in
            [(r#"{"containers":{}}"#, "{}"), (r#"{"containers":null}"#, r#"{"containers":null}"#), ("null", "null")]
        {
            assert_eq!(annotated(&json!({}), Some(text)).as_deref(), Some(after));
        }
        assert_eq!(annotated(&json!({}), None), None);
        assert_eq!(annotated(&json!({"requests": cpu}), None).as_deref(), Some(requests));
    }
}
