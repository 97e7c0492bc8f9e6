//! Names of the folders that a kubelet and a runtime make, and the placeholders of case files.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::case::Case;

/// The folders of a case's pods.
#[derive(Clone, Debug)]
pub struct Names {
    is_systemd: bool,
    pods: BTreeMap<String, Value>,
}

impl Names {
    pub fn of(case: &Case) -> Self {
        let pods = case.all_pods().map(|pod| (text(pod, "/metadata/name").to_owned(), pod.clone())).collect();
        Self { is_systemd: case.cgroup_driver == "systemd", pods }
    }

    /// A pod by its name.
    pub fn find(&self, name: &str) -> &Value {
        self.pods.get(name).unwrap_or_else(|| panic!("the case has no pod {name}"))
    }

    /// The folder of a QoS class: `Guaranteed`, `Burstable` or `BestEffort`.
    pub fn qos(&self, class: &str) -> &'static str {
        match (self.is_systemd, class) {
            (true, "Burstable") => "kubepods.slice/kubepods-burstable.slice",
            (true, "BestEffort") => "kubepods.slice/kubepods-besteffort.slice",
            (true, _) => "kubepods.slice",
            (false, "Burstable") => "kubepods/burstable",
            (false, "BestEffort") => "kubepods/besteffort",
            (false, _) => "kubepods",
        }
    }

    pub fn pod(&self, pod: &Value) -> String {
        let (class, uid) = (qos_class(pod), text(pod, "/metadata/uid"));
        let folder = self.qos(class);
        if !self.is_systemd {
            return format!("{folder}/pod{uid}");
        }
        let prefix = match class {
            "Burstable" => "kubepods-burstable-pod",
            "BestEffort" => "kubepods-besteffort-pod",
            _ => "kubepods-pod",
        };
        format!("{folder}/{prefix}{}.slice", uid.replace('-', "_"))
    }

    /// The folder of a container with an id such as `containerd://1a2b`.
    pub fn container(&self, pod: &Value, id: &str) -> String {
        let (runtime, hash) = id.split_once("://").unwrap_or((id, ""));
        let folder = self.pod(pod);
        if !self.is_systemd {
            return format!("{folder}/{hash}");
        }
        let prefix = match runtime {
            "docker" => "docker-",
            "containerd" => "cri-containerd-",
            "pouch" => "pouch-",
            "cri-o" => "crio-",
            other => panic!("unknown runtime {other}"),
        };
        format!("{folder}/{prefix}{hash}.scope")
    }

    /// The folder of the pod's sandbox.
    pub fn sandbox(&self, pod: &Value) -> String {
        let id = match text(pod, "/status/containerStatuses/0/containerID") {
            "" => "containerd://",
            id => id,
        };
        let runtime = id.split_once("://").map_or(id, |(runtime, _)| runtime);
        self.container(pod, &format!("{runtime}://{}", sandbox_id(pod)))
    }

    /// The folder of a container by the names of its pod and its own.
    pub fn container_named(&self, pod: &str, name: &str) -> String {
        let pod = self.find(pod);
        let status = statuses(pod).find(|status| status["name"] == name);
        let status = status.unwrap_or_else(|| panic!("no status of container {name}"));
        self.container(pod, text(status, "/containerID"))
    }

    /// Fills in `{be}`, `{burstable}`, `{kubepods}`, `{pod:NAME}`, `{ctr:POD/NAME}`, `{sbx:POD}` and `{uid:NAME}`; other braces stay.
    pub fn fill(&self, template: &str) -> String {
        let mut filled = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            let known = rest.find('}').and_then(|end| Some((end, self.placeholder(&rest[1..end])?)));
            if let Some((end, value)) = known {
                filled.push_str(&value);
                rest = &rest[end + 1..];
            } else {
                filled.push('{');
                rest = &rest[1..];
            }
        }
        filled.push_str(rest);
        filled
    }

    fn placeholder(&self, name: &str) -> Option<String> {
        match name {
            "be" => return Some(self.qos("BestEffort").to_owned()),
            "burstable" => return Some(self.qos("Burstable").to_owned()),
            "kubepods" => return Some(self.qos("Guaranteed").to_owned()),
            _ => {}
        }
        let (kind, name) = name.split_once(':')?;
        match kind {
            "pod" => Some(self.pod(self.find(name))),
            "uid" => Some(text(self.find(name), "/metadata/uid").to_owned()),
            "sbx" => Some(self.sandbox(self.find(name))),
            "ctr" => {
                let (pod, container) = name.split_once('/').unwrap_or((name, ""));
                Some(self.container_named(pod, container))
            }
            _ => None,
        }
    }
}

/// The text at a JSON pointer; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The items at a JSON pointer; none where there is no list.
pub(crate) fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The statuses of all containers of a pod.
pub(crate) fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    items(pod, "/status/containerStatuses").iter().chain(items(pod, "/status/initContainerStatuses"))
}

/// The QoS class of a pod by its status.
pub(crate) fn qos_class(pod: &Value) -> &str {
    match text(pod, "/status/qosClass") {
        "" => "BestEffort",
        class => class,
    }
}

fn sandbox_id(pod: &Value) -> String {
    let uid: String = text(pod, "/metadata/uid").chars().filter(|character| *character != '-').take(14).collect();
    format!("5a{uid}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(driver: &str) -> Names {
        let pod = json!({
            "metadata": {"name": "ls-1", "uid": "07e9d6d1-007d-d7fe-cd95-359f9f465a57"},
            "status": {"qosClass": "Burstable", "containerStatuses": [{"name": "main", "containerID": "containerd://d12e"}]},
        });
        Names::of(&Case { cgroup_driver: driver.to_owned(), pods: vec![pod], ..Case::default() })
    }

    #[test]
    fn placeholders_become_folders_of_the_driver() {
        let slice =
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod07e9d6d1_007d_d7fe_cd95_359f9f465a57.slice";
        let table = [
            ("systemd", "cgroup/{be}/x", "cgroup/kubepods.slice/kubepods-besteffort.slice/x".to_owned()),
            ("systemd", "{pod:ls-1}", slice.to_owned()),
            ("systemd", "{ctr:ls-1/main}", format!("{slice}/cri-containerd-d12e.scope")),
            ("systemd", "{sbx:ls-1}", format!("{slice}/cri-containerd-5a07e9d6d1007dd7.scope")),
            ("systemd", "{uid:ls-1}", "07e9d6d1-007d-d7fe-cd95-359f9f465a57".to_owned()),
            (
                "systemd",
                r#"{"a":{"b":"{burstable}"}}"#,
                r#"{"a":{"b":"kubepods.slice/kubepods-burstable.slice"}}"#.to_owned(),
            ),
            ("cgroupfs", "{kubepods}", "kubepods".to_owned()),
            (
                "cgroupfs",
                "{ctr:ls-1/main}",
                "kubepods/burstable/pod07e9d6d1-007d-d7fe-cd95-359f9f465a57/d12e".to_owned(),
            ),
        ];
        for (driver, template, wanted) in table {
            assert_eq!(names(driver).fill(template), wanted);
        }
    }
}
