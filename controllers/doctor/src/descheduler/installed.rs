//! Which schedulers and deschedulers of Koordinator and of kubernetes-sigs/descheduler are installed, by Deployments, CronJobs and Leases.

use std::collections::BTreeMap;

use koord_config::descheduler::DeschedulerConfiguration;
use serde_json::Value;

/// The names of Leases that deschedulers hold: that of Koordinator's, and that of kubernetes-sigs/descheduler.
pub(super) const LEASES: [&str; 2] = ["koord-descheduler", "descheduler"];

/// What a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// Ours, or the original's: they have one name.
    KoordDescheduler,
    KoordScheduler,
    /// kubernetes-sigs/descheduler.
    KubernetesSigs,
}

/// A workload that runs one of them, and is on.
#[derive(Debug, PartialEq)]
pub(super) struct Workload {
    /// Kind, namespace and name.
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) program: Program,
    arguments: Vec<String>,
    /// The ConfigMaps that it mounts.
    pub(super) config_maps: Vec<String>,
}

/// Those who evict: what elects one leader counts once.
#[derive(Debug, Default)]
pub(super) struct Evictors {
    /// By Lease, or by workload where there is none.
    by_leader: BTreeMap<String, Vec<String>>,
}

impl Workload {
    pub(super) fn of(kind: &str, object: &Value) -> Option<Self> {
        let (spec, metadata) = (&object["spec"], &object["metadata"]);
        if spec["replicas"] == 0 || spec["suspend"] == true {
            return None;
        }
        let template = if kind == "CronJob" { &spec["jobTemplate"]["spec"]["template"] } else { &spec["template"] };
        let pod = &template["spec"];
        let mut containers = pod["containers"].as_array().into_iter().flatten();
        let (program, container) = containers.find_map(|container| Some((program(container)?, container)))?;
        let texts = |list: &Value| {
            let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect::<Vec<_>>()
        };
        let volumes = pod["volumes"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
        Some(Self {
            name: format!("{kind} {namespace}/{name}"),
            namespace,
            program,
            arguments: [texts(&container["command"]), texts(&container["args"])].concat(),
            config_maps: volumes.filter_map(|volume| Some(volume["configMap"]["name"].as_str()?.to_owned())).collect(),
        })
    }

    /// The value of a flag; empty where it stands without one.
    fn flag(&self, name: &str) -> Option<&str> {
        self.arguments.iter().rev().find_map(|argument| {
            let rest = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))?.strip_prefix(name)?;
            if rest.is_empty() { Some("") } else { rest.strip_prefix('=') }
        })
    }

    /// The Lease by which one of its replicas leads; `None` where every replica evicts.
    fn lease(&self, configuration: Option<&DeschedulerConfiguration>) -> Option<String> {
        let is_elected =
            |default: bool| self.flag("leader-elect").map_or(default, |value| matches!(value, "" | "true"));
        let (namespace, name) = match self.program {
            Program::KubernetesSigs => {
                is_elected(false).then_some(())?;
                ("kube-system", "descheduler")
            }
            Program::KoordDescheduler | Program::KoordScheduler => {
                let election = configuration.map(|configuration| &configuration.leader_election);
                is_elected(election.is_none_or(|election| election.leader_elect)).then_some(())?;
                let namespace = election.and_then(|election| election.resource_namespace.as_deref());
                let name = election.and_then(|election| election.resource_name.as_deref());
                (namespace.unwrap_or("koordinator-system"), name.unwrap_or("koord-descheduler"))
            }
        };
        let namespace = self.flag("leader-elect-resource-namespace").unwrap_or(namespace);
        let name = self.flag("leader-elect-resource-name").unwrap_or(name);
        Some(format!("{namespace}/{name}"))
    }
}

/// What a container runs: by its command, or by its image.
fn program(container: &Value) -> Option<Program> {
    let last = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
    let command = container["command"][0].as_str().map(last);
    let image = container["image"].as_str().map(|image| {
        let image = last(image);
        image.split(['@', ':']).next().unwrap_or_default().to_owned()
    });
    command.iter().chain(&image).find_map(|name| match name.as_str() {
        "koord-descheduler" => Some(Program::KoordDescheduler),
        "koord-scheduler" => Some(Program::KoordScheduler),
        "descheduler" => Some(Program::KubernetesSigs),
        _ => None,
    })
}

impl Evictors {
    /// Adds a workload that evicts, with the configurations that it mounts.
    pub(super) fn add<'d>(&mut self, workload: &Workload, mut configurations: impl Iterator<Item = &'d Value>) {
        if workload.program == Program::KoordScheduler {
            return;
        }
        let configuration = configurations.find_map(|document| DeschedulerConfiguration::of(document).ok());
        let leader = workload.lease(configuration.as_ref()).unwrap_or_else(|| workload.name.clone());
        self.by_leader.entry(leader).or_default().push(workload.name.clone());
    }

    /// Adds whoever holds a Lease, unless its workload is known.
    pub(super) fn add_lease(&mut self, namespace: &str, name: &str, holder: &str) {
        let lease = format!("{namespace}/{name}");
        let held = format!("Lease {lease}, held by {holder}");
        self.by_leader.entry(lease).or_insert_with(|| vec![held]);
    }

    /// One name for each.
    pub(super) fn names(&self) -> Vec<String> {
        self.by_leader.values().filter_map(|names| names.first().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(kind: &str, name: &str, image: &str, args: &[&str]) -> Value {
        let pod = json!({
            "containers": [{"name": "side", "image": "envoy:1"}, {"name": "main", "image": image, "args": args}],
            "volumes": [{"name": "c", "configMap": {"name": "c"}}, {"name": "e", "emptyDir": {}}],
        });
        let template = json!({"spec": pod});
        let spec = match kind {
            "CronJob" => json!({"jobTemplate": {"spec": {"template": template}}}),
            _ => json!({"replicas": 1, "template": template}),
        };
        json!({"metadata": {"namespace": "ns", "name": name}, "spec": spec})
    }

    fn names(workloads: &[(&str, Value)], leases: &[(&str, &str)]) -> Vec<String> {
        let mut evictors = Evictors::default();
        let elected = json!({
            "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration",
            "leaderElection": {"resourceNamespace": "ns"},
        });
        for (kind, object) in workloads {
            if let Some(workload) = Workload::of(kind, object) {
                evictors.add(&workload, std::iter::once(&elected));
            }
        }
        for (namespace, name) in leases {
            evictors.add_lease(namespace, name, "pod-1");
        }
        evictors.names()
    }

    const OURS: &str = "ghcr.io/example/koord-descheduler:v1";
    const COMMUNITY: &str = "registry.k8s.io/descheduler/descheduler:v0.35.1@sha256:0a";

    #[test]
    fn workloads_are_known_by_image_and_command() {
        let of = |object: &Value| {
            Workload::of("Deployment", object).map(|workload| (workload.program, workload.config_maps))
        };
        let config_maps = vec!["c".to_owned()];
        assert_eq!(of(&workload("Deployment", "d", OURS, &[])), Some((Program::KoordDescheduler, config_maps.clone())));
        assert_eq!(
            of(&workload("Deployment", "d", COMMUNITY, &[])),
            Some((Program::KubernetesSigs, config_maps.clone()))
        );
        assert_eq!(
            of(&workload("Deployment", "d", "koord-scheduler", &[])),
            Some((Program::KoordScheduler, config_maps))
        );
        assert_eq!(of(&workload("Deployment", "d", "registry/descheduler-ui:1", &[])), None);
        let mut by_command = workload("Deployment", "d", "mirror/tools:1", &[]);
        by_command["spec"]["template"]["spec"]["containers"][1]["command"] = json!(["/bin/descheduler", "-v=3"]);
        assert_eq!(of(&by_command).map(|(program, _)| program), Some(Program::KubernetesSigs));
        let mut off = workload("Deployment", "d", OURS, &[]);
        off["spec"]["replicas"] = 0.into();
        assert_eq!(of(&off), None);
        let mut suspended = workload("CronJob", "d", COMMUNITY, &[]);
        assert!(Workload::of("CronJob", &suspended).is_some());
        suspended["spec"]["suspend"] = true.into();
        assert_eq!(Workload::of("CronJob", &suspended), None);
        for odd in [
            json!(null),
            json!({"spec": {"template": 5}}),
            json!({"spec": {"template": {"spec": {"containers": [{"image": 5}]}}}}),
        ] {
            assert_eq!(of(&odd), None);
        }
    }

    #[test]
    fn two_deschedulers_are_two_and_replicas_of_one_lease_are_one() {
        let deployment =
            |name: &str, image: &str, args: &[&str]| ("Deployment", workload("Deployment", name, image, args));
        let cron_job = || ("CronJob", workload("CronJob", "c", COMMUNITY, &[]));
        assert_eq!(names(&[deployment("a", OURS, &[]), cron_job()], &[]), ["CronJob ns/c", "Deployment ns/a"]);
        assert_eq!(names(&[deployment("a", OURS, &[]), deployment("b", OURS, &[])], &[]), ["Deployment ns/a"]);
        let other = deployment("b", OURS, &["--leader-elect-resource-name=other"]);
        assert_eq!(names(&[deployment("a", OURS, &[]), other], &[]).len(), 2);
        let alone = deployment("b", OURS, &["--leader-elect=false"]);
        assert_eq!(names(&[deployment("a", OURS, &[]), alone], &[]).len(), 2);
    }

    #[test]
    fn a_lease_shows_a_descheduler_that_runs_elsewhere() {
        let ours = || ("Deployment", workload("Deployment", "a", OURS, &[]));
        assert_eq!(names(&[ours()], &[("ns", "koord-descheduler")]), ["Deployment ns/a"], "its own");
        assert_eq!(
            names(&[ours()], &[("kube-system", "descheduler")]),
            ["Lease kube-system/descheduler, held by pod-1", "Deployment ns/a"]
        );
        let elected = workload("Deployment", "k", COMMUNITY, &["--leader-elect"]);
        assert_eq!(names(&[("Deployment", elected)], &[("kube-system", "descheduler")]), ["Deployment ns/k"]);
    }
}
