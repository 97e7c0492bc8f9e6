//! A NodeMetric: its spec, which the manager alone writes and which equal ones share, and what koordlet reports.

use std::{borrow::Cow, sync::Arc};

use jiff::Timestamp;
use koord_resource::{Resource as _, Time, controller::ResourceKind};
use koord_runtime::{
    intern::Interner,
    outcome::Owned,
    projection::{DecodeError, Projection, WireObject, nullable, text},
};
use koord_types::{node_metric::NodeMetric, priority::PriorityClass};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::pod_uses::PodUses;
use crate::amount::{Amount, CpuMemory};

/// What koordlet shall measure, and what it has measured.
#[derive(Debug, PartialEq, Eq)]
pub struct NodeMetricView {
    spec: Arc<str>,
    /// What koordlet reports; none before its first report.
    pub report: Option<Box<Report>>,
}

/// What koordlet reports about a node.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// When it was measured.
    pub updated: Option<Timestamp>,
    /// Use of the node.
    pub measured: Option<Measured>,
    /// Use of its pods.
    pub pods: PodUses,
    /// Use of applications outside pods.
    pub applications: Box<[ApplicationUsage]>,
    /// What prod pods requested and are not expected to use.
    pub reclaimable: Option<CpuMemory>,
}

/// Use of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// By everything; none where CPU or memory is missing.
    pub node: Option<CpuMemory>,
    /// By everything but pods.
    pub system: CpuMemory,
}

/// Use of an application outside pods.
#[derive(Debug, PartialEq, Eq)]
pub struct ApplicationUsage {
    pub name: Box<str>,
    pub usage: CpuMemory,
    pub class: Option<PriorityClass>,
}

impl NodeMetricView {
    /// The spec as a value; empty when the object has none.
    pub fn spec(&self) -> Value {
        serde_json::from_str(&self.spec).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
    }

    /// Whether a change matters to the one who writes the spec.
    pub fn has_other_spec(&self, old: &Self) -> bool {
        self.spec != old.spec
    }
}

impl Owned for NodeMetricView {
    fn owned(&self) -> Value {
        json!({ "spec": self.spec() })
    }
}

/// What is read of a NodeMetric.
#[derive(Deserialize)]
pub struct Members<'a> {
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<Status<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow, default)]
    update_time: Option<Cow<'a, str>>,
    #[serde(default)]
    node_metric: Option<NodeUse>,
    #[serde(borrow, default)]
    pods_metric: Option<Vec<PodUse<'a>>>,
    #[serde(borrow, default)]
    host_application_metric: Option<Vec<ApplicationUse<'a>>>,
    #[serde(default)]
    prod_reclaimable_metric: Option<Prediction>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeUse {
    #[serde(default)]
    node_usage: Option<Amounts>,
    #[serde(default)]
    system_usage: Option<Amounts>,
}

#[derive(Clone, Copy, Deserialize)]
struct Amounts {
    #[serde(default)]
    resources: Option<Stated>,
}

/// Amounts that may be missing.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Stated {
    cpu: Option<Amount>,
    memory: Option<Amount>,
}

#[derive(Deserialize)]
struct Prediction {
    #[serde(default)]
    resource: Option<Amounts>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodUse<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    name: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    namespace: Cow<'a, str>,
    #[serde(default)]
    pod_usage: Option<Amounts>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    priority: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ApplicationUse<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    name: Cow<'a, str>,
    #[serde(default)]
    usage: Option<Amounts>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    priority: Cow<'a, str>,
}

fn stated(amounts: Option<Amounts>) -> Stated {
    amounts.and_then(|amounts| amounts.resources).unwrap_or_default()
}

fn usage(amounts: Option<Amounts>) -> CpuMemory {
    let Stated { cpu, memory } = stated(amounts);
    CpuMemory { cpu: cpu.unwrap_or_default(), memory: memory.unwrap_or_default() }
}

// By hand: the report is kept packed, without its text.
impl Projection for NodeMetricView {
    const KIND: ResourceKind = ResourceKind::of(&NodeMetric::INFO);
    type Wire<'a> = WireObject<'a, Members<'a>>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let report = wire.members.status.map(Report::read).transpose()?.filter(|report| *report != Report::default());
        Ok(Self { spec: strings.intern(text(wire.members.spec)), report: report.map(Box::new) })
    }
}

impl Report {
    fn read(status: Status<'_>) -> Result<Self, DecodeError> {
        let updated = status.update_time.map(|time| time.parse().map(Time::at));
        let updated = updated.transpose().map_err(|error| DecodeError::new("status.updateTime", error))?;
        let pods = status.pods_metric.unwrap_or_default();
        let pods = PodUses::pack(pods.iter().map(|pod| {
            let class = PriorityClass::named(&pod.priority);
            let is_best_effort = matches!(class, Some(PriorityClass::Batch | PriorityClass::Free));
            (&*pod.namespace, &*pod.name, usage(pod.pod_usage), is_best_effort)
        }));
        let applications = status.host_application_metric.unwrap_or_default().into_iter();
        let applications = applications.map(|application| ApplicationUsage {
            name: application.name.into(),
            usage: usage(application.usage),
            class: PriorityClass::named(&application.priority),
        });
        Ok(Self {
            updated,
            measured: status.node_metric.map(|measured| Measured {
                node: match stated(measured.node_usage) {
                    Stated { cpu: Some(cpu), memory: Some(memory) } => Some(CpuMemory { cpu, memory }),
                    _ => None,
                },
                system: usage(measured.system_usage),
            }),
            pods,
            applications: applications.collect(),
            reclaimable: status.prod_reclaimable_metric.map(|metric| usage(metric.resource)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_may_have_the_last_time_that_can_be_written() {
        let read = |time: &str| {
            let text = format!(r#"{{"updateTime": {time}}}"#);
            Report::read(serde_json::from_str(&text).unwrap()).map(|report| report.updated)
        };
        assert_eq!(read(r#""9999-12-31T23:59:59Z""#), Ok(Some(Timestamp::MAX)));
        assert_eq!(read("null"), Ok(None));
        assert_eq!(read(r#""soon""#).unwrap_err().field, "status.updateTime");
    }
}
