//! Files of the kubelet: `cpu_manager_state`, and the cgroup driver in its configuration.

use std::collections::BTreeMap;

use koord_scheduling::CpuSet;
use serde::Deserialize;

use crate::{
    cgroup::{Driver, KubeletRoot},
    parse_error::Excerpt,
};

/// What the kubelet's CPU manager has given to containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuManagerState {
    /// `none` or `static`; empty where the file does not say.
    pub policy: String,
    /// CPUs that are given to no container.
    pub default_cpus: CpuSet,
    /// CPUs of containers, in the order of pods and containers.
    pub allocations: Vec<CpuAllocation>,
    /// Entries that are not understood. They harm themselves alone.
    pub skipped: Vec<SkippedAllocation>,
}

/// The CPUs of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuAllocation {
    /// UID of the pod.
    pub pod_uid: String,
    /// Name of the container.
    pub container: String,
    /// CPUs that no other container has.
    pub cpus: CpuSet,
}

/// An entry of `cpu_manager_state` that is no set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cpu_manager_state: {field} is {text}, not a list such as 0-3,8")]
pub struct SkippedAllocation {
    /// `defaultCpuSet`, or the entry as `entries.UID.CONTAINER`.
    pub field: String,
    /// The first bytes of what stands there.
    pub text: Excerpt,
}

/// `cpu_manager_state` is no JSON of this form.
#[derive(Debug, thiserror::Error)]
#[error("cpu_manager_state cannot be read: {0}")]
pub struct CpuManagerStateError(#[from] serde_json::Error);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct StateFile {
    policy_name: Option<String>,
    default_cpu_set: Option<String>,
    entries: Option<BTreeMap<String, serde_json::Value>>,
}

impl CpuManagerState {
    /// Reads `{"policyName":"static","defaultCpuSet":"2-3","entries":{"UID":{"CONTAINER":"0,4"}}}`.
    ///
    /// # Errors
    ///
    /// The text is no such JSON. A malformed entry is left out and listed.
    pub fn parse(text: &[u8]) -> Result<Self, CpuManagerStateError> {
        let file: StateFile = serde_json::from_slice(text)?;
        let mut state = Self { policy: file.policy_name.unwrap_or_default(), ..Self::default() };
        let default_cpus = file.default_cpu_set.unwrap_or_default();
        match default_cpus.parse() {
            Ok(cpus) => state.default_cpus = cpus,
            Err(_) => state.skip("defaultCpuSet".to_owned(), &default_cpus),
        }
        for (pod_uid, containers) in file.entries.unwrap_or_default() {
            let serde_json::Value::Object(containers) = containers else {
                state.skip(format!("entries.{pod_uid}"), &containers.to_string());
                continue;
            };
            for (container, cpus) in containers {
                match cpus.as_str().map(str::parse) {
                    Some(Ok(cpus)) => {
                        state.allocations.push(CpuAllocation { pod_uid: pod_uid.clone(), container, cpus });
                    }
                    _ => state.skip(format!("entries.{pod_uid}.{container}"), &cpus.to_string()),
                }
            }
        }
        Ok(state)
    }

    fn skip(&mut self, field: String, text: &str) {
        self.skipped.push(SkippedAllocation { field, text: Excerpt::new(text.as_bytes()) });
    }

    /// The CPUs of each pod, in the order of their UIDs.
    pub fn cpus_of_pods(&self) -> BTreeMap<&str, CpuSet> {
        let mut pods: BTreeMap<&str, CpuSet> = BTreeMap::new();
        for allocation in &self.allocations {
            pods.entry(&allocation.pod_uid).or_default().insert_all(&allocation.cpus);
        }
        pods
    }
}

/// The cgroup driver of a kubelet's configuration file, which is YAML or JSON: the key `cgroupDriver` at the top.
/// `None` where it is not set to one of the two, and the kubelet's default is in force.
pub fn configured_cgroup_driver(text: &[u8]) -> Option<Driver> {
    driver_of(&configured(text, "cgroupDriver")?)
}

/// The cgroup in which a kubelet's configuration file keeps that of all pods: the key `cgroupRoot` at the top.
pub fn configured_cgroup_root(text: &[u8]) -> Option<KubeletRoot> {
    configured(text, "cgroupRoot").map(|root| KubeletRoot::new(&root))
}

/// A key at the top of a configuration file whose value is a word.
fn configured(text: &[u8], key: &str) -> Option<String> {
    if let Ok(configuration) = serde_json::from_slice::<serde_json::Value>(text) {
        return configuration.get(key)?.as_str().map(str::to_owned);
    }
    let text = std::str::from_utf8(text).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let value = value.split(" #").next().unwrap_or(value);
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

/// The driver that a kubelet names `systemd` or `cgroupfs`.
pub(crate) fn driver_of(name: &str) -> Option<Driver> {
    match name {
        "systemd" => Some(Driver::Systemd),
        "cgroupfs" => Some(Driver::Cgroupfs),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocations(state: &CpuManagerState) -> Vec<String> {
        state.allocations.iter().map(|entry| format!("{}/{} {}", entry.pod_uid, entry.container, entry.cpus)).collect()
    }

    #[test]
    fn cpus_of_containers_are_read() {
        let text = r#"{"policyName":"static","defaultCpuSet":"2-3,6-7","entries":{"f21a":{"main":"0,4"},
            "c05b":{"main":"1","side":"5"}},"checksum":1}"#;
        let state = CpuManagerState::parse(text.as_bytes()).unwrap();
        assert_eq!((state.policy.as_str(), state.default_cpus.to_string().as_str()), ("static", "2-3,6-7"));
        assert_eq!(allocations(&state), ["c05b/main 1", "c05b/side 5", "f21a/main 0,4"]);
        let pods: Vec<_> = state.cpus_of_pods().into_iter().map(|(uid, cpus)| format!("{uid} {cpus}")).collect();
        assert_eq!(pods, ["c05b 1,5", "f21a 0,4"]);
        for text in
            [r#"{"policyName":"none","defaultCpuSet":"","checksum":1}"#, r#"{"policyName":"none","entries":null}"#]
        {
            let none = CpuManagerState { policy: "none".to_owned(), ..CpuManagerState::default() };
            assert_eq!(CpuManagerState::parse(text.as_bytes()).unwrap(), none);
        }
    }

    #[test]
    fn a_malformed_entry_harms_itself_alone_and_is_named() {
        let text = r#"{"policyName":"static","defaultCpuSet":"all","entries":{"a":{"main":"0","bad":"x-1","number":3},"b":"1-2"}}"#;
        let state = CpuManagerState::parse(text.as_bytes()).unwrap();
        assert_eq!(allocations(&state), ["a/main 0"]);
        let skipped: Vec<_> = state.skipped.iter().map(ToString::to_string).collect();
        assert_eq!(
            skipped,
            [
                r#"cpu_manager_state: defaultCpuSet is "all", not a list such as 0-3,8"#,
                r#"cpu_manager_state: entries.a.bad is "\"x-1\"", not a list such as 0-3,8"#,
                r#"cpu_manager_state: entries.a.number is "3", not a list such as 0-3,8"#,
                r#"cpu_manager_state: entries.b is "\"1-2\"", not a list such as 0-3,8"#,
            ]
        );
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "{", "[]x", r#"{"policyName":1}"#, r#"{"entries":[]}"#] {
            let error = CpuManagerState::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("cpu_manager_state cannot be read: "), "{error}");
        }
    }

    #[test]
    fn the_driver_is_a_key_at_the_top_of_the_configuration() {
        use Driver::{Cgroupfs, Systemd};
        for (text, driver) in [
            ("kind: KubeletConfiguration\ncgroupDriver: systemd\n", Some(Systemd)),
            ("cgroupDriver: \"cgroupfs\" # as the runtime\n", Some(Cgroupfs)),
            ("cgroupDriver:   'systemd'", Some(Systemd)),
            (r#"{"kind":"KubeletConfiguration","cgroupDriver":"cgroupfs"}"#, Some(Cgroupfs)),
            ("nested:\n  cgroupDriver: systemd\n", None),
            ("# cgroupDriver: systemd\n", None),
            ("cgroupDriver: other\n", None),
            (r#"{"cgroupDriver":1}"#, None),
            ("", None),
        ] {
            assert_eq!(configured_cgroup_driver(text.as_bytes()), driver, "{text:?}");
        }
        assert_eq!(configured_cgroup_driver(b"\xff"), None);
        for text in ["cgroupDriver: systemd\ncgroupRoot: \"/kubelet\"\n", r#"{"cgroupRoot":"kubelet/"}"#] {
            assert_eq!(configured_cgroup_root(text.as_bytes()), Some(KubeletRoot::new("/kubelet")), "{text}");
        }
        assert_eq!(configured_cgroup_root(b"cgroupRootless: /kubelet"), None);
    }
}
