//! Faults on purpose, and a record of who asked for what.
//!
//! A [`Rule`] says into which requests a fault is injected, and which fault. Rules are tried in order; one that has done its work is
//! forgotten. The record proves that a program needs no more permissions than its role gives.

use std::{collections::BTreeSet, time::Duration};

use http::Method;
use parking_lot::Mutex;

use crate::{
    request::{ApiRequest, parse_path},
    status::ApiError,
};

/// What a request asks for, as RBAC names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// API group; empty for core.
    pub group: String,
    /// Plural.
    pub resource: String,
    /// Subresource; empty for none.
    pub subresource: String,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The request is refused and not carried out.
    Refuse(ApiError),
    /// The request is carried out, and this is answered instead of the truth.
    LoseAnswer(ApiError),
    /// A list shows the state of so many revisions ago.
    StaleList(u64),
    /// A watch loses an event.
    DropEvent,
    /// A watch gets an event twice.
    RepeatEvent,
    /// A watch gets an event, and all that follow, later.
    DelayEvent(Duration),
    /// A watch ends where an event was due.
    CutWatch,
    /// A watch ends with the error that its revision has expired.
    Expire,
}

impl Fault {
    fn is_of_watches(&self) -> bool {
        matches!(self, Fault::DropEvent | Fault::RepeatEvent | Fault::DelayEvent(_) | Fault::CutWatch | Fault::Expire)
    }
}

/// Which requests, or events of watches, a fault is injected into.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Verb; empty for any.
    pub verb: String,
    /// Plural; empty for any.
    pub resource: String,
    /// So many matching requests pass first.
    pub skip: u32,
    /// The fault is injected so many times afterwards.
    pub times: u32,
    /// By this.
    pub fault: Fault,
}

impl Rule {
    /// Befalls the next request with this verb on this resource; empty words mean any.
    pub fn next(verb: &str, resource: &str, fault: Fault) -> Self {
        Self { verb: verb.to_owned(), resource: resource.to_owned(), skip: 0, times: 1, fault }
    }

    /// Lets so many matching requests pass first.
    pub fn after(mut self, skip: u32) -> Self {
        self.skip = skip;
        self
    }

    /// Befalls so many requests instead of one.
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }
}

/// The faults and the record of one server.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Mutex<Vec<Rule>>,
    record: Mutex<Option<BTreeSet<(String, Access)>>>,
}

impl Faults {
    /// Adds a rule behind those that are there.
    pub fn add(&self, rule: Rule) {
        self.rules.lock().push(rule);
    }

    /// Drops all rules that have not done their work.
    pub fn clear(&self) {
        self.rules.lock().clear();
    }

    /// Whether any rule is left.
    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.lock().is_empty()
    }

    /// Starts an empty record.
    pub fn start_record(&self) {
        *self.record.lock() = Some(BTreeSet::new());
    }

    /// Who asked for what since the record was started: pairs of user and access, each once.
    pub fn record(&self) -> BTreeSet<(String, Access)> {
        self.record.lock().clone().unwrap_or_default()
    }

    /// Counts a request and returns the fault for it.
    pub(crate) fn of_request(&self, request: &ApiRequest) -> Option<Fault> {
        let has_rules = self.has_rules();
        let mut record = self.record.lock();
        if !has_rules && record.is_none() {
            return None;
        }
        let access = access(request)?;
        let fault = self.take(&access.verb, &access.resource, false);
        if let Some(record) = record.as_mut() {
            record.insert((request.user.name.clone(), access));
        }
        fault
    }

    /// The fault for the next event of a watch.
    pub(crate) fn of_event(&self, resource: &str) -> Option<Fault> {
        self.take("watch", resource, true)
    }

    fn take(&self, verb: &str, resource: &str, is_event: bool) -> Option<Fault> {
        let mut rules = self.rules.lock();
        let matches = |rule: &Rule| {
            rule.fault.is_of_watches() == is_event
                && (rule.verb.is_empty() || rule.verb == verb)
                && (rule.resource.is_empty() || rule.resource == resource)
        };
        let index = rules.iter().position(matches)?;
        let rule = &mut rules[index];
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        rule.times = rule.times.saturating_sub(1);
        let fault = rule.fault.clone();
        if rule.times == 0 {
            rules.remove(index);
        }
        Some(fault)
    }
}

/// What a request asks for; none for pages that are no resources.
pub fn access(request: &ApiRequest) -> Option<Access> {
    let target = parse_path(&request.path).filter(|target| !target.resource.is_empty())?;
    let is_collection = target.name.is_empty();
    let watches = target.watch_prefix
        || request.parameter("watch").is_some_and(|text| !matches!(text.to_lowercase().as_str(), "false" | "0"));
    let verb = match (&request.method, is_collection) {
        (&Method::GET | &Method::HEAD, _) if watches && (is_collection || target.watch_prefix) => "watch",
        (&Method::GET | &Method::HEAD, true) => "list",
        (&Method::GET | &Method::HEAD, false) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "deletecollection",
        (&Method::DELETE, false) => "delete",
        _ => return None,
    };
    Some(Access {
        verb: verb.to_owned(),
        group: target.group,
        resource: target.resource,
        subresource: target.subresource,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, path: &str) -> ApiRequest {
        ApiRequest::new(method, path, "")
    }

    #[test]
    fn the_nth_request_is_befallen_and_no_other() {
        let faults = Faults::default();
        faults.add(Rule::next("create", "pods", Fault::Refuse(ApiError::too_many_requests("slow"))).after(1));
        let pods = request(Method::POST, "/api/v1/namespaces/n/pods");
        assert_eq!(faults.of_request(&pods), None);
        assert_eq!(faults.of_request(&request(Method::GET, "/api/v1/namespaces/n/pods")), None);
        assert!(matches!(faults.of_request(&pods), Some(Fault::Refuse(_))));
        assert_eq!(faults.of_request(&pods), None);
    }

    #[test]
    fn the_record_names_each_access_once() {
        let faults = Faults::default();
        faults.start_record();
        faults.of_request(&request(Method::GET, "/api/v1/pods?watch=true"));
        faults.of_request(&request(Method::GET, "/api/v1/pods?watch=true"));
        faults.of_request(&request(Method::PATCH, "/apis/apps/v1/namespaces/n/deployments/d/scale"));
        let found: Vec<String> = faults
            .record()
            .into_iter()
            .map(|(user, access)| {
                format!("{user} {} {}/{} {}", access.verb, access.group, access.resource, access.subresource)
            })
            .collect();
        assert_eq!(found, ["admin patch apps/deployments scale", "admin watch /pods "]);
    }
}
