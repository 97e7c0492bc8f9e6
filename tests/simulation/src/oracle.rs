//! What the manager should make of the cluster, computed anew: slow and plain, from the server's JSON, by the rules of
//! spec/manager.md §2 and §4, and with none of the code that it is compared with.

mod config;
mod node;
mod pods;
mod profile;
mod quantity;
mod quota;
mod slo;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::Value;

use self::config::Config;
use crate::people::name_of;

/// All that the manager's controllers work with, as the server holds it.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    /// `data` of slo-controller-config.
    pub(crate) config: Value,
    pub(crate) nodes: Vec<Value>,
    pub(crate) pods: Vec<Value>,
    pub(crate) metrics: Vec<Value>,
    pub(crate) slos: Vec<Value>,
    pub(crate) devices: Vec<Value>,
    pub(crate) topologies: Vec<Value>,
    pub(crate) profiles: Vec<Value>,
    pub(crate) quotas: Vec<Value>,
    pub(crate) namespaces: Vec<Value>,
    /// Pods that wait for a node.
    pub(crate) waiting: Vec<Value>,
    pub(crate) colocation_profiles: Vec<Value>,
}

impl Cluster {
    /// Whether everything is as it should be at this time; otherwise the first thing that is not.
    pub(crate) fn check(&self, now: Timestamp) -> Result<(), String> {
        let config = Config::read(&self.config)?;
        for (kind, found) in [("NodeSLO", &self.slos), ("NodeMetric", &self.metrics)] {
            let (found, nodes): (Vec<_>, Vec<_>) =
                (found.iter().map(name_of).collect(), self.nodes.iter().map(name_of).collect());
            if found != nodes {
                return Err(format!("{kind}s of {found:?} for the nodes {nodes:?}"));
            }
        }
        for node in &self.nodes {
            let name = name_of(node);
            slo::check(&config, node, of(&self.slos, &name))?;
            slo::check_metric(&config, node, of(&self.metrics, &name))?;
            node::Sight {
                config: &config,
                node,
                pods: self.pods.iter().filter(|pod| pod["spec"]["nodeName"] == name.as_str()).collect(),
                metric: of(&self.metrics, &name),
                device: of(&self.devices, &name),
                topology: of(&self.topologies, &name),
                now,
            }
            .check()?;
        }
        self.profiles.iter().try_for_each(|profile| quota::check(profile, &self.nodes, &self.quotas))?;
        self.waiting.iter().try_for_each(|pod| profile::check(pod, &self.namespaces, &self.colocation_profiles))
    }
}

/// The object of this name, in a list by names; nothing where there is none.
fn of<'a>(objects: &'a [Value], name: &str) -> &'a Value {
    let found = objects.binary_search_by(|object| object["metadata"]["name"].as_str().cmp(&Some(name)));
    found.map_or(&Value::Null, |index| &objects[index])
}

/// A label or annotation.
fn entry<'a>(object: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    object["metadata"][map][key].as_str()
}
