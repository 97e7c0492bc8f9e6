//! What was chosen, as it is written into claims.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use koord_scheduler_framework::dynamic::{AllocatedDevice, DeviceConfiguration, DeviceId};
use serde_json::{Value, json};

use super::{AllocationError, Choice, Search};
use crate::dynamic_resources::{
    demand::{Alternative, Demand, RequestedDevices},
    ledger::Given,
};

impl Search<'_> {
    /// What each claim is given, by what was chosen.
    pub(super) fn given(&self) -> Result<Vec<Given>, AllocationError> {
        let claims = self.demands.iter().zip(&self.choices);
        claims
            .map(|(demand, choices)| {
                let results = choices.iter().filter_map(|choice| self.result(choice)).collect();
                Ok(Given { results, config: config(demand, choices), node_selector: self.selector(choices)? })
            })
            .collect()
    }

    fn result(&self, choice: &Choice<'_>) -> Option<AllocatedDevice> {
        let candidate = self.candidates.get(choice.candidate)?;
        let device = DeviceId {
            driver: Arc::clone(&candidate.pool.driver),
            pool: Arc::clone(&candidate.pool.pool),
            device: Arc::clone(&candidate.device.name),
        };
        let alternative = choice.alternative;
        Some(AllocatedDevice {
            request: alternative.name.clone(),
            device,
            admin_access: alternative.is_admin.then_some(true),
            share_id: None,
        })
    }

    /// The nodes from which all chosen devices can be reached.
    fn selector(&self, choices: &[Choice<'_>]) -> Result<Option<NodeSelector>, AllocationError> {
        let (mut fields, mut expressions) = (Vec::new(), Vec::new());
        let chosen = choices.iter().filter_map(|choice| self.candidates.get(choice.candidate));
        for spec in chosen.map(|candidate| &candidate.slice.spec) {
            if let Some(name) = spec.node_name.as_deref().filter(|name| !name.is_empty()) {
                let only = NodeSelectorRequirement {
                    key: "metadata.name".to_owned(),
                    operator: "In".to_owned(),
                    values: Some(vec![name.to_owned()]),
                };
                return Ok(Some(term(vec![only], Vec::new())));
            }
            match spec.node_selector.as_ref().map(|selector| selector.node_selector_terms.as_slice()) {
                None | Some([]) => {}
                Some([one]) => {
                    add(&mut fields, one.match_fields.as_deref());
                    add(&mut expressions, one.match_expressions.as_deref());
                }
                Some(terms) => return Err(AllocationError::NodeSelector(terms.len())),
            }
        }
        Ok((!fields.is_empty() || !expressions.is_empty()).then(|| term(fields, expressions)))
    }
}

fn term(fields: Vec<NodeSelectorRequirement>, expressions: Vec<NodeSelectorRequirement>) -> NodeSelector {
    let some = |all: Vec<_>| Some(all).filter(|all| !all.is_empty());
    let term = NodeSelectorTerm { match_fields: some(fields), match_expressions: some(expressions) };
    NodeSelector { node_selector_terms: vec![term] }
}

fn add(all: &mut Vec<NodeSelectorRequirement>, more: Option<&[NodeSelectorRequirement]>) {
    for requirement in more.into_iter().flatten() {
        if !all.contains(requirement) {
            all.push(requirement.clone());
        }
    }
}

/// The parameters for drivers: first those of classes, each once, then those of the claim.
fn config(demand: &Demand, choices: &[Choice<'_>]) -> Vec<Value> {
    let chosen: Vec<(&RequestedDevices, &Alternative)> =
        demand.requests.iter().filter_map(|requested| chosen(requested, choices)).collect();
    let mut order = Vec::new();
    let mut by_class = BTreeMap::<&str, Vec<&str>>::new();
    for (_, alternative) in &chosen {
        let class = alternative.spec.device_class_name.as_str();
        let requests = by_class.entry(class).or_default();
        if requests.is_empty() {
            order.push((class, &alternative.class.spec.config));
        }
        requests.push(&alternative.name);
    }
    let of_classes = order.into_iter().flat_map(|(class, config)| {
        let requests: Vec<String> =
            by_class.get(class).into_iter().flatten().map(|request| (*request).to_owned()).collect();
        config.iter().map(move |config| sourced("FromClass", &requests, config))
    });
    let concerns = |config: &&DeviceConfiguration| {
        let is_named = |(requested, alternative): &(&RequestedDevices, &Alternative)| {
            config.requests.contains(&requested.name) || config.requests.contains(&alternative.name)
        };
        config.requests.is_empty() || chosen.iter().any(is_named)
    };
    let of_claim = demand.config.iter().filter(concerns);
    of_classes.chain(of_claim.map(|config| sourced("FromClaim", &config.requests, config))).collect()
}

/// The alternative of a request that was chosen: the only one, or that which has devices.
fn chosen<'a>(
    requested: &'a RequestedDevices,
    choices: &[Choice<'a>],
) -> Option<(&'a RequestedDevices, &'a Alternative)> {
    let of_request = choices.iter().find(|choice| std::ptr::eq(choice.request, requested));
    let alternative = of_request.map(|choice| choice.alternative).or_else(|| requested.alternatives.first());
    Some((requested, alternative?))
}

fn sourced(source: &str, requests: &[String], config: &DeviceConfiguration) -> Value {
    let mut object = config.parameters.clone();
    object.insert("source".to_owned(), json!(source));
    if !requests.is_empty() {
        object.insert("requests".to_owned(), json!(requests));
    }
    Value::Object(object)
}
