//! What hooks see of a pod, whoever delivers it: the reconciler, NRI or the runtime proxy.

use koord_koordlet_framework::Pod;
use koord_koordlet_system::{CgroupPath, QosFolder};
use koord_scheduling::CpuSet;
use koord_types::{
    numa::{RESOURCE_STATUS, ResourceStatus},
    protocol::{Key, Labels, Text},
    qos::{QOS_LABEL, QosClass},
};

use crate::refused::{Refused, Subject};

/// A pod as hooks see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodView<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) labels: &'a Labels,
    pub(crate) annotations: &'a Labels,
    /// Annotations that could all be read when the pod was seen last: they stand in for those that cannot be now.
    pub(crate) last_good: Option<&'a Labels>,
    pub(crate) cgroup: &'a CgroupPath,
    /// The pod of the kubelet's list; runtimes do not know it.
    pub(crate) listed: Option<&'a Pod>,
}

/// An annotation cannot be read, has been reported, and has no last good text.
#[derive(Debug)]
pub(crate) struct Malformed;

impl<'a> PodView<'a> {
    pub(crate) fn of_pod(pod: &'a Pod, last_good: Option<&'a Pod>) -> Self {
        Self {
            namespace: &pod.namespace,
            name: &pod.name,
            uid: &pod.uid,
            labels: &pod.labels,
            annotations: &pod.annotations,
            last_good: last_good.map(|pod| &pod.annotations),
            cgroup: &pod.cgroup,
            listed: Some(pod),
        }
    }

    /// The class that the label names.
    pub(crate) fn qos_label(&self) -> Option<QosClass> {
        QosClass::of_label(self.labels.get(QOS_LABEL).map(String::as_str))
    }

    /// The folder of Kubernetes' QoS class in which the cgroup is.
    pub(crate) fn folder(&self) -> QosFolder {
        self.cgroup.qos_folder()
    }

    /// An annotation. One that cannot be read is reported; its last good text stands in for it.
    pub(crate) fn read<T: Text>(&self, key: &Key<T>, refused: &mut Vec<Refused>) -> Result<Option<T>, Malformed> {
        match key.get(self.annotations) {
            Ok(value) => Ok(value),
            Err(error) => {
                let reason =
                    format!("{:?} is wrong: {}; expected {}", excerpt(&error.value), error.reason, error.expected);
                let refusal = self.refusal(key.name(), reason);
                if !refused.contains(&refusal) {
                    refused.push(refusal);
                }
                self.last_good(key).map(Some).ok_or(Malformed)
            }
        }
    }

    /// The last value of an annotation that could be read.
    pub(crate) fn last_good<T: Text>(&self, key: &Key<T>) -> Option<T> {
        self.last_good.and_then(|annotations| key.get(annotations).ok().flatten())
    }

    pub(crate) fn refusal(&self, key: &'static str, reason: impl Into<std::sync::Arc<str>>) -> Refused {
        let subject = Subject::Pod(format!("{}/{}", self.namespace, self.name).into());
        Refused { subject, key, reason: reason.into() }
    }

    /// The CPUs and NUMA nodes that the scheduler gave the pod, and the CPUs as a set; defaults where it gave none.
    pub(crate) fn resource_status(&self, refused: &mut Vec<Refused>) -> Result<(ResourceStatus, CpuSet), Malformed> {
        let status = self.read(&RESOURCE_STATUS, refused)?.unwrap_or_default();
        match status.cpus() {
            Ok(cpus) => Ok((status, cpus)),
            Err(error) => {
                let refusal = self.refusal(RESOURCE_STATUS.name(), error.to_string());
                if !refused.contains(&refusal) {
                    refused.push(refusal);
                }
                let last = self.last_good(&RESOURCE_STATUS).ok_or(Malformed)?;
                let cpus = last.cpus().map_err(|_| Malformed)?;
                Ok((last, cpus))
            }
        }
    }

    /// The class for which CPUs are set: the one of the label; a pod without one that has CPUs of its own counts as LSR.
    pub(crate) fn cpuset_class(&self) -> Option<QosClass> {
        // Who reads the annotation for its own sake reports that it is malformed.
        let has_cpus = || {
            RESOURCE_STATUS
                .get(self.annotations)
                .is_ok_and(|status| status.is_some_and(|status| !status.cpuset.is_empty()))
        };
        self.qos_label().or_else(|| has_cpus().then_some(QosClass::Lsr))
    }
}

/// The beginning of a text that a user wrote.
fn excerpt(text: &str) -> &str {
    const CHARACTERS_MAX: usize = 80;
    text.char_indices().nth(CHARACTERS_MAX).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}
