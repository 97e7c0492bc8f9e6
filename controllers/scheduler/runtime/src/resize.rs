//! Pods whose containers are resized while they run: what they count with until that is done.

use std::{borrow::Cow, collections::BTreeMap};

use k8s_openapi::{
    api::core::v1::{Container, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
};
use koord_resource::Quantity;
use serde::Deserialize;
use serde_json::value::RawValue;

type Amounts = BTreeMap<String, ApiQuantity>;

/// What the status of a container says about its resources.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerStatus<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
    /// What it has; none before it runs, and of a kubelet that resizes nothing.
    #[serde(borrow)]
    resources: Option<Requests<'a>>,
    /// What the node has promised it.
    #[serde(borrow)]
    allocated_resources: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Requests<'a> {
    #[serde(borrow)]
    requests: Option<&'a RawValue>,
}

impl ContainerStatus<'_> {
    /// Whether it has, and was promised, what it requests by these words. Of one that says nothing that is so.
    pub(crate) fn has(&self, requests: Option<&RawValue>) -> bool {
        let is_same = |amounts: Option<&RawValue>| amounts.map(RawValue::get) == requests.map(RawValue::get);
        self.resources.as_ref().is_none_or(|has| is_same(has.requests))
            && self.allocated_resources.is_none_or(|promised| is_same(Some(promised)))
    }
}

/// The same as amounts.
struct Status<'a> {
    name: &'a str,
    has: Option<Amounts>,
    promised: Option<Amounts>,
}

/// The pod as it counts while a container has more than it is to have, or cannot have what it is to have; none where it counts as it is.
///
/// A container counts with the largest of what it is to have, what it was promised and what it has. Where the node can never give it more
/// (`is_infeasible`), what it is to have does not count.
pub(crate) fn resized<'a>(
    spec: &PodSpec,
    statuses: impl IntoIterator<Item = &'a ContainerStatus<'a>>,
    is_infeasible: bool,
) -> Result<Option<PodSpec>, serde_json::Error> {
    let read = |amounts: &RawValue| serde_json::from_str::<Amounts>(amounts.get());
    let statuses: Vec<Status<'_>> = statuses
        .into_iter()
        .map(|status| {
            let has = status
                .resources
                .as_ref()
                .map(|has| has.requests.map_or_else(|| Ok(Amounts::new()), read))
                .transpose()?;
            let promised = status.allocated_resources.map(read).transpose()?;
            Ok(Status { name: &status.name, has, promised })
        })
        .collect::<Result<_, serde_json::Error>>()?;
    let requests = |container: &Container| {
        let requested = requests(container).cloned().unwrap_or_default();
        let status = statuses.iter().find(|status| status.name == container.name)?;
        let has = status.has.as_ref()?;
        let wished = if is_infeasible { None } else { Some(&requested) };
        let counted = largest(wished.into_iter().chain([has]).chain(&status.promised));
        (counted != requested).then_some(counted)
    };
    let runs_on = |container: &Container| container.restart_policy.as_deref() == Some("Always");
    let containers = spec.containers.iter().map(requests);
    let init = spec.init_containers.iter().flatten();
    let init = init.map(|container| if runs_on(container) { requests(container) } else { None });
    let counted: Vec<Option<Amounts>> = containers.chain(init).collect();
    if counted.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut resized = spec.clone();
    let containers = resized.containers.iter_mut().chain(resized.init_containers.iter_mut().flatten());
    for (container, counted) in containers.zip(counted) {
        if let Some(counted) = counted {
            container.resources.get_or_insert_with(ResourceRequirements::default).requests = Some(counted);
        }
    }
    Ok(Some(resized))
}

fn requests(container: &Container) -> Option<&Amounts> {
    container.resources.as_ref()?.requests.as_ref()
}

/// The largest amount of each resource. Of equal ones the first stays as it was written.
fn largest<'a>(lists: impl Iterator<Item = &'a Amounts>) -> Amounts {
    let quantity = |amount: &ApiQuantity| amount.0.parse::<Quantity>().ok();
    let mut all = Amounts::new();
    for (name, amount) in lists.flatten() {
        if all.get(name).is_none_or(|known| quantity(known) < quantity(amount)) {
            all.insert(name.clone(), amount.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn container(name: &str, cpu: &str) -> Value {
        json!({"name": name, "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}})
    }

    fn cpus(spec: &Value, statuses: &Value, is_infeasible: bool) -> Option<Vec<String>> {
        let spec: PodSpec = serde_json::from_value(spec.clone()).unwrap();
        let text = statuses.to_string();
        let statuses: Vec<ContainerStatus<'_>> = serde_json::from_str(&text).unwrap();
        let resized = resized(&spec, &statuses, is_infeasible).unwrap()?;
        let containers = resized.containers.iter().chain(resized.init_containers.iter().flatten());
        Some(containers.map(|container| requests(container).unwrap()["cpu"].0.clone()).collect())
    }

    #[test]
    fn a_container_counts_with_the_most_of_what_it_is_to_have_was_promised_and_has() {
        let spec = json!({"containers": [container("a", "2"), container("b", "1")]});
        let status = |has: &str, promised: &str| json!([{"name": "a", "resources": {"requests": {"cpu": has}}, "allocatedResources": {"cpu": promised}}]);
        let counted = |cpu: &str| Some(vec![cpu.to_owned(), "1".to_owned()]);
        for (has, promised, is_infeasible, expected) in [
            ("2", "2000m", false, None),
            ("1", "1", false, None),
            ("3", "2", false, counted("3")),
            ("1", "2500m", false, counted("2500m")),
            ("1", "1", true, counted("1")),
            ("1", "1500m", true, counted("1500m")),
        ] {
            assert_eq!(cpus(&spec, &status(has, promised), is_infeasible), expected, "{has} {promised}");
        }
        let silent = json!([{"name": "a", "allocatedResources": {"cpu": "9"}}, {"name": "c", "resources": {}}]);
        assert_eq!(cpus(&spec, &silent, false), None, "it does not say what the container has");
    }

    #[test]
    fn of_init_containers_only_those_count_that_go_on_running() {
        let mut sidecar = container("s", "1");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({"containers": [container("a", "1")], "initContainers": [container("i", "1"), sidecar]});
        let has = |name: &str| json!({"name": name, "resources": {"requests": {"cpu": "4"}}});
        let counted = cpus(&spec, &json!([has("i"), has("s")]), false);
        assert_eq!(counted, Some(["1", "1", "4"].map(str::to_owned).into()));
        assert_eq!(cpus(&spec, &json!([has("i")]), false), None);
    }
}
