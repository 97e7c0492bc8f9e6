//! What the kubelet says of its configuration at `/configz`.

use std::collections::BTreeMap;

use koord_resource::Quantity;
use serde::Deserialize;

/// The kubelet's configuration, as far as the agent reads it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeletConfiguration {
    /// `none` or `static`.
    pub cpu_manager_policy: String,
    pub cpu_manager_policy_options: BTreeMap<String, String>,
    /// `none`, `best-effort`, `restricted` or `single-numa-node`.
    pub topology_manager_policy: String,
    /// `container` or `pod`.
    pub topology_manager_scope: String,
    /// CPUs that no pod gets, such as `0-1`.
    #[serde(rename = "reservedSystemCPUs")]
    pub reserved_system_cpus: String,
    pub kube_reserved: BTreeMap<String, Quantity>,
    pub system_reserved: BTreeMap<String, Quantity>,
    /// The cgroup that the cgroup of all pods is in; empty or `/` for the root.
    pub cgroup_root: String,
    /// `systemd` or `cgroupfs`.
    pub cgroup_driver: String,
}

/// Why an answer of the kubelet is no configuration.
#[derive(Debug, thiserror::Error)]
#[error("the kubelet's answer at /configz is no configuration: {0}")]
pub struct KubeletConfigurationError(#[from] serde_json::Error);

impl KubeletConfiguration {
    /// Reads the body of the answer. A field of another form than expected is as if it were not there; members that the agent does not read are not looked at.
    ///
    /// # Errors
    ///
    /// The body is no JSON object with a member `kubeletconfig`.
    pub fn parse(body: &[u8]) -> Result<Self, KubeletConfigurationError> {
        #[derive(Deserialize)]
        struct Answer {
            kubeletconfig: serde_json::Map<String, serde_json::Value>,
        }
        let Answer { kubeletconfig: mut fields } = serde_json::from_slice(body)?;
        // null is absent.
        fields.retain(|_, value| !value.is_null());
        Ok(serde_json::from_value(serde_json::Value::Object(fields))?)
    }

    /// Whether it gives CPUs of their own to pods.
    pub fn is_static(&self) -> bool {
        self.cpu_manager_policy == "static"
    }

    /// How many CPUs no pod gets, rounded up, where they are not named.
    pub(crate) fn reserved_cpu_count(&self) -> usize {
        let mut sum = Quantity::ZERO;
        for reserved in [&self.kube_reserved, &self.system_reserved] {
            if let Some(cpu) = reserved.get("cpu") {
                sum += cpu;
            }
        }
        usize::try_from(sum.value()).unwrap_or_default()
    }

    /// The policies of NodeResourceTopology: one word of policy and scope.
    pub(crate) fn topology_policy(&self) -> &'static str {
        let is_pod = self.topology_manager_scope == "pod";
        match (self.topology_manager_policy.as_str(), is_pod) {
            ("single-numa-node", false) => "SingleNUMANodeContainerLevel",
            ("single-numa-node", true) => "SingleNUMANodePodLevel",
            ("restricted", false) => "RestrictedContainerLevel",
            ("restricted", true) => "RestrictedPodLevel",
            ("best-effort", false) => "BestEffortContainerLevel",
            ("best-effort", true) => "BestEffortPodLevel",
            _ => "None",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_agent_does_not_read_cannot_harm() {
        let body = br#"{"kubeletconfig":{"cpuManagerPolicy":"static","kubeReserved":{"cpu":"2"},"systemReserved":{"cpu":"500m"},
            "logging":{"flushFrequency":{"x":1}},"evictionHard":{"cpu":"500m"},"topologyManagerPolicy":"restricted","cgroupRoot":null}}"#;
        let configuration = KubeletConfiguration::parse(body).unwrap();
        assert!(configuration.is_static());
        assert_eq!(
            (configuration.reserved_cpu_count(), configuration.topology_policy()),
            (3, "RestrictedContainerLevel")
        );
        for body in ["not json", "{}", r#"{"kubeletconfig":[]}"#, r#"{"kubeletconfig":{"cpuManagerPolicy":7}}"#] {
            assert!(KubeletConfiguration::parse(body.as_bytes()).is_err(), "{body}");
        }
    }
}
