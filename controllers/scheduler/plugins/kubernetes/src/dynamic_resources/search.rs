//! Devices for the claims of a pod on one node: the first choice in which every request has what it requests.

mod given;
mod taints;

use std::sync::Arc;

use koord_core::key::ObjectKey;
use koord_scheduler_framework::{
    dynamic::{Device, DeviceAttribute, DeviceConstraint, DeviceTaint, ResourceSlice},
    node::Node,
    object::Objects,
};
use thiserror::Error;

use self::taints::{tolerates, with_rules};
use super::{
    demand::{Alternative, DEVICES_MAX, Demand, RequestedDevices},
    ledger::{Given, InPool, Ledger},
    pools::{Pool, PoolId, Pools, Problem},
    selectors::{Answers, Selectors},
};

/// The message when no choice of devices fits.
pub(super) const NONE: &str = "cannot allocate all claims";

/// Why a node cannot give the claims of a pod what they request.
#[derive(Debug, Error)]
pub(super) enum AllocationError {
    #[error("{NONE}{}", .0.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default())]
    NoneFits(Option<Hint>),
    #[error("{NONE}: more than {STEPS_MAX} choices of devices were tried")]
    TooManySteps,
    #[error("claim {claim}, request {request}: asks for all devices, but resource pool {pool} {problem}")]
    AllOfUnusablePool { claim: ObjectKey, request: String, pool: PoolId, problem: Problem },
    #[error(transparent)]
    Selector(#[from] SelectorError),
    #[error("DeviceTaintRule {rule}: selector #{index}: CEL compile error: {error}")]
    TaintRule { rule: ObjectKey, index: usize, error: Arc<str> },
    #[error("unsupported ResourceSlice.NodeSelector with {0} terms")]
    NodeSelector(usize),
}

impl AllocationError {
    /// Nothing is known of the devices.
    pub(super) const NONE: Self = Self::NoneFits(None);
}

/// A selector that has failed for a device.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{selector}: CEL runtime error: {error}")]
pub(super) struct SelectorError {
    selector: String,
    error: Arc<str>,
}

/// What would have fitted, if it could be used.
#[derive(Debug, Error)]
pub(super) enum Hint {
    #[error("resource pool {0} {1}")]
    Pool(PoolId, Problem),
    #[error("device {0} {1}, which is not supported")]
    Device(Arc<str>, &'static str),
}

/// Choices that are looked at on one node, before the search is given up.
const STEPS_MAX: usize = 10_000;

/// Where devices are looked for.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) pools: &'a Pools,
    pub(super) ledger: &'a Ledger,
    pub(super) objects: &'a Objects,
    pub(super) selectors: &'a Selectors,
}

/// A device that can be reached from the node.
struct Candidate<'a> {
    pool: &'a PoolId,
    slice: &'a ResourceSlice,
    device: &'a Device,
    /// Whether another claim has it.
    is_given: bool,
    /// Its taints by rules, beside its own.
    tainted: Vec<&'a DeviceTaint>,
    /// The claims for which it is chosen.
    chosen_by: Vec<usize>,
}

/// A device that is chosen for a request.
#[derive(Clone, Copy)]
struct Choice<'a> {
    candidate: usize,
    request: &'a RequestedDevices,
    alternative: &'a Alternative,
}

/// A search on one node.
struct Search<'a> {
    demands: &'a [Demand],
    candidates: Vec<Candidate<'a>>,
    /// By alternative, in the order in which the demands name them: what its selectors say about each candidate.
    answers: Vec<Vec<Result<bool, SelectorError>>>,
    /// By claim.
    choices: Vec<Vec<Choice<'a>>>,
    steps: usize,
    hint: Option<Hint>,
}

/// How far a search has come.
#[derive(Clone, Copy)]
struct Place<'a> {
    claim: usize,
    request: usize,
    alternative: (usize, &'a Alternative),
    /// Devices that are still to be chosen.
    left: usize,
    /// The first candidate to look at: earlier ones were tried with all that follow.
    from: usize,
}

/// What each claim is given on a node.
pub(super) fn on(node: &Node, demands: &[Demand], scope: Scope<'_>) -> Result<Vec<Given>, AllocationError> {
    let (mut candidates, mut hint, mut answers) = (Vec::new(), None, Vec::new());
    let alternatives = || {
        let of_demand = |demand| requests_of(demand).map(move |(requested, one)| (demand, requested, one));
        demands.iter().flat_map(of_demand)
    };
    answers.resize_with(alternatives().count(), Vec::new);
    for (id, pool) in scope.pools.reached_from(node) {
        if let Some(problem) = &pool.problem {
            let all = alternatives().find(|(.., alternative)| alternative.count.is_none());
            if let Some((demand, requested, _)) = all {
                let (claim, request, pool) = (demand.key.clone(), requested.name.clone(), id.clone());
                return Err(AllocationError::AllOfUnusablePool { claim, request, pool, problem: problem.clone() });
            }
            hint.get_or_insert_with(|| Hint::Pool(id.clone(), problem.clone()));
            continue;
        }
        add_pool(&mut candidates, (id, pool), node, scope)?;
        for (answers, (demand, _, alternative)) in answers.iter_mut().zip(alternatives()) {
            for part in pool.reached_from(node) {
                if let Some(slice) = scope.objects.get::<ResourceSlice>(part.key.as_str()) {
                    let of = |text: &str| scope.selectors.answers(text, part, slice);
                    answers.extend(selected(alternative, demand, slice.spec.devices.len(), of)?);
                }
            }
        }
    }
    let choices = demands.iter().map(|_| Vec::new()).collect();
    let mut search = Search { demands, candidates, answers, choices, steps: 0, hint };
    if search.request(0, 0)? {
        return search.given();
    }
    Err(AllocationError::NoneFits(search.hint))
}

fn requests_of(demand: &Demand) -> impl Iterator<Item = (&RequestedDevices, &Alternative)> {
    demand.requests.iter().flat_map(|requested| requested.alternatives.iter().map(move |one| (requested, one)))
}

fn add_pool<'a>(
    all: &mut Vec<Candidate<'a>>,
    (id, pool): (&'a PoolId, &'a Pool),
    node: &Node,
    scope: Scope<'a>,
) -> Result<(), AllocationError> {
    let given: Option<&InPool> = scope.ledger.in_pool(id);
    for part in pool.reached_from(node) {
        let Some(slice) = scope.objects.get::<ResourceSlice>(part.key.as_str()) else { continue };
        let tainted = with_rules(part, slice, scope)?;
        all.extend(slice.spec.devices.iter().zip(tainted).map(|(device, tainted)| {
            let is_given = given.is_some_and(|given| given.contains_key(&device.name));
            Candidate { pool: id, slice, device, is_given, tainted, chosen_by: Vec::new() }
        }));
    }
    Ok(())
}

/// What the selectors of an alternative say about so many devices of a slice: the first that refuses one, or fails, counts.
fn selected(
    alternative: &Alternative,
    demand: &Demand,
    devices: usize,
    answers: impl Fn(&str) -> Result<Answers, Arc<str>>,
) -> Result<Vec<Result<bool, SelectorError>>, SelectorError> {
    let mut all = vec![Ok(true); devices];
    for (selector, text) in alternative.selectors(&demand.key) {
        let failed = |error| SelectorError { selector: selector.clone(), error };
        let answers = answers(text).map_err(failed)?;
        for (known, answer) in all.iter_mut().zip(&*answers) {
            if *known == Ok(true) {
                *known = answer.clone().map_err(failed);
            }
        }
    }
    Ok(all)
}

impl<'a> Search<'a> {
    /// Finds devices for this request, and for all that come after it.
    fn request(&mut self, claim: usize, request: usize) -> Result<bool, AllocationError> {
        let Some(demand) = self.demands.get(claim) else { return Ok(true) };
        let Some(requested) = demand.requests.get(request) else { return self.request(claim + 1, 0) };
        for alternative in self.numbered(claim, request, requested) {
            if self.alternative(claim, request, alternative)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The alternatives of a request, with their numbers among all.
    fn numbered(&self, claim: usize, request: usize, requested: &'a RequestedDevices) -> Vec<(usize, &'a Alternative)> {
        let before = self.demands.iter().take(claim).flat_map(|demand| &demand.requests);
        let before =
            before.chain(self.demands.get(claim).into_iter().flat_map(|one| one.requests.iter().take(request)));
        let first: usize = before.map(|requested| requested.alternatives.len()).sum();
        (first..).zip(&requested.alternatives).collect()
    }

    fn alternative(
        &mut self,
        claim: usize,
        request: usize,
        number: (usize, &'a Alternative),
    ) -> Result<bool, AllocationError> {
        let place = |left| Place { claim, request, alternative: number, left, from: 0 };
        let chosen = self.choices.get(claim).map_or(0, Vec::len);
        if let Some(count) = number.1.count {
            return if chosen.saturating_add(count) > DEVICES_MAX { Ok(false) } else { self.devices(place(count)) };
        }
        let mut all = Vec::new();
        for candidate in 0..self.candidates.len() {
            if self.is_selected(number, candidate)? {
                all.push(candidate);
            }
        }
        let is_possible = !all.is_empty() && chosen + all.len() <= DEVICES_MAX;
        if is_possible { self.all(place(0), &all) } else { Ok(false) }
    }

    /// Chooses all of these devices, and goes on.
    fn all(&mut self, place: Place<'a>, all: &[usize]) -> Result<bool, AllocationError> {
        let before = self.choices.get(place.claim).map_or(0, Vec::len);
        let is_found = all.iter().all(|candidate| self.choose(place, *candidate));
        if is_found && self.request(place.claim, place.request + 1)? {
            return Ok(true);
        }
        while self.choices.get(place.claim).is_some_and(|choices| choices.len() > before) {
            self.undo(place.claim);
        }
        Ok(false)
    }

    /// Chooses the devices that are left to be chosen, and goes on.
    fn devices(&mut self, place: Place<'a>) -> Result<bool, AllocationError> {
        if place.left == 0 {
            return self.request(place.claim, place.request + 1);
        }
        for candidate in place.from..self.candidates.len() {
            if !self.is_free(place, candidate) || !self.is_selected(place.alternative, candidate)? {
                continue;
            }
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Err(AllocationError::TooManySteps);
            }
            if !self.choose(place, candidate) {
                continue;
            }
            if self.devices(Place { left: place.left - 1, from: candidate + 1, ..place })? {
                return Ok(true);
            }
            self.undo(place.claim);
        }
        Ok(false)
    }

    /// Whether a device is free, or may be shared by this request.
    fn is_free(&self, place: Place<'a>, candidate: usize) -> bool {
        let candidate = self.candidates.get(candidate);
        candidate.is_some_and(|Candidate { is_given, chosen_by, .. }| {
            if place.alternative.1.is_admin {
                !chosen_by.contains(&place.claim)
            } else {
                !is_given && chosen_by.is_empty()
            }
        })
    }

    /// Whether the selectors want a device; an error where one of them fails.
    fn is_selected(&self, (number, _): (usize, &Alternative), candidate: usize) -> Result<bool, SelectorError> {
        self.answers.get(number).and_then(|answers| answers.get(candidate)).cloned().unwrap_or(Ok(false))
    }

    /// Chooses a device, if nothing but its selectors is against it.
    fn choose(&mut self, place: Place<'a>, candidate: usize) -> bool {
        let alternative = place.alternative.1;
        if !self.is_free(place, candidate) || !self.is_supported(candidate) {
            return false;
        }
        let demands: &'a [Demand] = self.demands;
        let Some(demand) = demands.get(place.claim) else { return false };
        let Some(request) = demand.requests.get(place.request) else { return false };
        let choice = Choice { candidate, request, alternative };
        let is_tainted = self.candidates.get(candidate).is_some_and(|candidate| {
            let mut taints = candidate.device.taints.iter().chain(candidate.tainted.iter().copied());
            taints.any(|taint| !tolerates(&alternative.spec.tolerations, taint))
        });
        if is_tainted || !demand.constraints.iter().all(|constraint| self.keeps(constraint, place.claim, choice)) {
            return false;
        }
        if let (Some(candidate), Some(choices)) =
            (self.candidates.get_mut(candidate), self.choices.get_mut(place.claim))
        {
            candidate.chosen_by.push(place.claim);
            choices.push(choice);
        }
        true
    }

    fn undo(&mut self, claim: usize) {
        let last = self.choices.get_mut(claim).and_then(Vec::pop);
        if let Some(candidate) = last.and_then(|last| self.candidates.get_mut(last.candidate)) {
            candidate.chosen_by.pop();
        }
    }

    /// Whether a device is one of those that can be given as a whole and at once. One that is not is named where nothing fits.
    fn is_supported(&mut self, candidate: usize) -> bool {
        let Some(Candidate { device, .. }) = self.candidates.get(candidate) else { return false };
        let lack = if !device.consumes_counters.is_empty() {
            "shares counters with others"
        } else if device.allow_multiple_allocations == Some(true) {
            "is given in parts"
        } else if !device.binding_conditions.is_empty() {
            "has binding conditions"
        } else {
            return true;
        };
        self.hint.get_or_insert_with(|| Hint::Device(Arc::clone(&device.name), lack));
        false
    }

    /// Whether a constraint of a claim holds with one more device.
    fn keeps(&self, constraint: &DeviceConstraint, claim: usize, choice: Choice<'_>) -> bool {
        let names = &constraint.requests;
        let concerns = |choice: &Choice<'_>| {
            let (request, alternative) = (&choice.request.name, &choice.alternative.name);
            names.is_empty() || names.contains(request) || names.contains(alternative)
        };
        if !concerns(&choice) {
            return true;
        }
        let others = || self.choices.get(claim).into_iter().flatten().filter(|other| concerns(other));
        let value = |choice: &Choice<'_>, name: &str| attribute(self.candidates.get(choice.candidate)?, name);
        let same = constraint.match_attribute.as_deref().is_none_or(|name| {
            let own_value = value(&choice, name);
            own_value.is_some() && others().all(|other| value(other, name) == own_value)
        });
        let distinct = constraint.distinct_attribute.as_deref().is_none_or(|name| {
            let own_value = value(&choice, name);
            own_value.is_some() && others().all(|other| value(other, name) != own_value)
        });
        same && distinct
    }
}

/// An attribute by its full name; what a driver names without a domain is in its own.
fn attribute<'c>(candidate: &Candidate<'c>, name: &str) -> Option<&'c DeviceAttribute> {
    let attributes = &candidate.device.attributes;
    attributes.get(name).or_else(|| {
        let (domain, id) = name.split_once('/')?;
        (domain == &*candidate.slice.spec.driver).then(|| attributes.get(id)).flatten()
    })
}

#[cfg(test)]
mod tests;
