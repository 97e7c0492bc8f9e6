//! What a claim without devices requests, checked.

use std::sync::Arc;

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    dynamic::{DeviceClass, DeviceConfiguration, DeviceConstraint, DeviceRequest, DeviceRequestSpec, Selector},
    object::Objects,
};
use thiserror::Error;

use super::{
    claims::Claim,
    ledger::{Given, revision},
    selectors::Selectors,
};

/// How many devices a claim can have.
pub(super) const DEVICES_MAX: usize = 32;

/// Why nothing can be allocated to a claim, wherever its pod runs.
#[derive(Debug, Error)]
pub(super) enum DemandError {
    #[error("{selector}: CEL compile error: {error}")]
    Selector { selector: String, error: Arc<str> },
    #[error("claim {claim}, constraint #{index}: empty constraint (unsupported constraint type?)")]
    EmptyConstraint { claim: ObjectKey, index: usize },
    #[error("claim {claim}: number of requested devices {devices} exceeds the claim limit of {DEVICES_MAX}")]
    TooManyDevices { claim: ObjectKey, devices: usize },
    #[error("resource claim {claim}, request {request}: unknown request type")]
    UnknownRequest { claim: ObjectKey, request: String },
    #[error("request {0}: unsupported request type")]
    UnsupportedRequest(String),
    #[error("request {request}: device class {class} does not exist")]
    NoClass { request: String, class: String },
    #[error("claim {claim}, request {request}: {unsupported}")]
    Unsupported { claim: ObjectKey, request: String, unsupported: Unsupported },
}

/// What of a request is not supported.
#[derive(Debug, Error)]
pub(super) enum Unsupported {
    #[error("selector #{0}: CEL expression empty (unsupported selector type?)")]
    Selector(usize),
    #[error("asks for a part of a device, which is not supported")]
    Capacity,
    #[error("unsupported count mode {0}")]
    CountMode(String),
}

/// What a claim requests.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    pub(super) key: ObjectKey,
    pub(super) uid: Uid,
    pub(super) revision: u64,
    pub(super) requests: Vec<RequestedDevices>,
    pub(super) constraints: Vec<DeviceConstraint>,
    pub(super) config: Vec<DeviceConfiguration>,
}

/// A request: alternatives, of which the first that can be had counts.
#[derive(Clone, Debug)]
pub(super) struct RequestedDevices {
    pub(super) name: String,
    pub(super) alternatives: Vec<Alternative>,
}

/// One alternative of a request.
#[derive(Clone, Debug)]
pub(super) struct Alternative {
    /// The name in results: of the request, and of the alternative where there are several.
    pub(super) name: String,
    /// How many devices; none for all that there are.
    pub(super) count: Option<usize>,
    pub(super) is_admin: bool,
    pub(super) spec: DeviceRequestSpec,
    pub(super) class: DeviceClass,
}

impl Alternative {
    /// All expressions by which devices are selected, each with the class or claim that it belongs to and its index there.
    pub(super) fn selectors<'a>(&'a self, claim: &ObjectKey) -> impl Iterator<Item = (String, &'a str)> {
        let expressions = |selectors: &'a [Selector], of: String| {
            let texts = selectors.iter().enumerate();
            texts.filter_map(move |(index, selector)| {
                let text = selector.cel.as_ref().map(|cel| cel.expression.as_str())?;
                Some((format!("{of}: selector #{index}"), text))
            })
        };
        let of_class = expressions(&self.class.spec.selectors, format!("class {}", self.spec.device_class_name));
        of_class.chain(expressions(&self.spec.selectors, format!("claim {claim}")))
    }
}

impl Demand {
    /// What a claim requests, checked.
    pub(super) fn of(claim: &Claim<'_>, objects: &Objects, selectors: &Selectors) -> Result<Self, DemandError> {
        let spec = &claim.object.spec.devices;
        let requests: Vec<RequestedDevices> = spec
            .requests
            .iter()
            .map(|request| requested_devices(request, &claim.key, objects))
            .collect::<Result<_, _>>()?;
        let demand = Self {
            key: claim.key.clone(),
            uid: claim.uid.clone(),
            revision: revision(claim.object),
            requests,
            constraints: spec.constraints.clone(),
            config: spec.config.clone(),
        };
        demand.check(selectors)?;
        Ok(demand)
    }

    /// Whether a request has alternatives.
    pub(super) fn has_choice(&self) -> bool {
        self.requests.iter().any(|request| request.alternatives.len() > 1)
    }

    /// How early the alternatives are named that were chosen.
    pub(super) fn preference(&self, given: &Given) -> i64 {
        let with_choice = self.requests.iter().filter(|request| request.alternatives.len() > 1);
        let ranks = with_choice.filter_map(|request| {
            let is_chosen = |one: &Alternative| given.results.iter().any(|result| result.request == one.name);
            request.alternatives.iter().rev().zip(1..).find(|(one, _)| is_chosen(one)).map(|(_, rank)| rank)
        });
        ranks.sum()
    }

    fn check(&self, selectors: &Selectors) -> Result<(), DemandError> {
        let key = &self.key;
        for alternative in self.requests.iter().flat_map(|request| &request.alternatives) {
            for (selector, text) in alternative.selectors(key) {
                selectors.check(text).map_err(|error| DemandError::Selector { selector, error })?;
            }
        }
        let is_unknown = |constraint: &DeviceConstraint| {
            constraint.match_attribute.is_none() && constraint.distinct_attribute.is_none()
        };
        if let Some(index) = self.constraints.iter().position(is_unknown) {
            return Err(DemandError::EmptyConstraint { claim: key.clone(), index });
        }
        let fewest = |request: &RequestedDevices| {
            request.alternatives.iter().map(|one| one.count.unwrap_or(1)).min().unwrap_or(0)
        };
        let devices = self.requests.iter().map(fewest).fold(0, usize::saturating_add);
        if devices > DEVICES_MAX {
            return Err(DemandError::TooManyDevices { claim: key.clone(), devices });
        }
        Ok(())
    }
}

fn requested_devices(
    request: &DeviceRequest,
    claim: &ObjectKey,
    objects: &Objects,
) -> Result<RequestedDevices, DemandError> {
    let name = &request.name;
    let alternatives = if let Some(exactly) = &request.exactly {
        vec![alternative(name.clone(), exactly, claim, objects)?]
    } else {
        let named = request.first_available.iter().map(|one| (format!("{name}/{}", one.name), one));
        named.map(|(name, one)| alternative(name, one, claim, objects)).collect::<Result<_, _>>()?
    };
    if alternatives.is_empty() {
        return Err(DemandError::UnknownRequest { claim: claim.clone(), request: name.clone() });
    }
    Ok(RequestedDevices { name: name.clone(), alternatives })
}

fn alternative(
    name: String,
    spec: &DeviceRequestSpec,
    claim: &ObjectKey,
    objects: &Objects,
) -> Result<Alternative, DemandError> {
    let unsupported =
        |unsupported| Err(DemandError::Unsupported { claim: claim.clone(), request: name.clone(), unsupported });
    let class = spec.device_class_name.as_str();
    if class.is_empty() {
        return Err(DemandError::UnsupportedRequest(name));
    }
    let Some(class) = objects.get::<DeviceClass>(class) else {
        return Err(DemandError::NoClass { request: name, class: class.to_owned() });
    };
    if let Some(index) = spec.selectors.iter().position(|selector| selector.cel.is_none()) {
        return unsupported(Unsupported::Selector(index));
    }
    if spec.capacity.is_some() {
        return unsupported(Unsupported::Capacity);
    }
    let count = match (spec.allocation_mode.as_str(), spec.count.unwrap_or(1)) {
        ("" | "ExactCount", count) => Some(usize::try_from(count).unwrap_or(usize::MAX)),
        ("All", _) => None,
        (mode, _) => return unsupported(Unsupported::CountMode(mode.to_owned())),
    };
    let is_admin = spec.admin_access == Some(true);
    Ok(Alternative { name, count, is_admin, spec: spec.clone(), class: class.clone() })
}
