//! Cgroups of host applications, which run outside of pods.

use koord_koordlet_system::{CgroupPath, Layout, QosFolder};
use koord_types::{
    node_slo::{CgroupBase, HostApplicationSpec},
    qos::QosClass,
};

/// The cgroup of a host application: where its specification says, else a folder of its name below that of its class.
///
/// # Errors
///
/// The path leaves the hierarchy of cgroups, is the root itself, or has a base that is not known.
pub fn host_application_cgroup(layout: Layout, application: &HostApplicationSpec) -> Result<CgroupPath, String> {
    let path = match &application.cgroup_path {
        None => {
            let parent = match application.qos {
                Some(QosClass::Lse | QosClass::Lsr | QosClass::Ls) => "host-latency-sensitive",
                Some(QosClass::Be) => "host-best-effort",
                _ => "",
            };
            format!("{parent}/{}", application.name)
        }
        Some(path) => {
            let base = match &path.base {
                None | Some(CgroupBase::CgroupRoot) => CgroupPath::root(),
                Some(CgroupBase::Kubepods) => layout.kubepods(),
                Some(CgroupBase::KubepodsBurstable) => layout.qos(QosFolder::Burstable),
                Some(CgroupBase::KubepodsBesteffort) => layout.qos(QosFolder::BestEffort),
                Some(base) => {
                    return Err(format!(
                        "base {:?} is none of CgroupRoot, Kubepods, KubepodsBurstable and KubepodsBesteffort",
                        base.as_str()
                    ));
                }
            };
            format!("{}/{}/{}", base.as_str(), path.parent_dir, path.relative_path)
        }
    };
    let folders: Vec<&str> = path.split('/').filter(|folder| !folder.is_empty() && *folder != ".").collect();
    if folders.contains(&"..") {
        return Err(format!("{path:?} leaves the hierarchy of cgroups"));
    }
    if folders.is_empty() {
        return Err("the path is the root of the hierarchy".to_owned());
    }
    Ok(CgroupPath::new(&folders.join("/")))
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::{Driver, Version};
    use serde_json::json;

    use super::*;

    #[test]
    fn applications_have_the_folder_of_their_class_or_path() {
        let layout = Layout::new(Version::V1, Driver::Cgroupfs);
        for (application, cgroup) in [
            (json!({"name": "a", "qos": "LS"}), Ok("host-latency-sensitive/a")),
            (json!({"name": "a", "qos": "LSR"}), Ok("host-latency-sensitive/a")),
            (json!({"name": "b", "qos": "BE"}), Ok("host-best-effort/b")),
            (json!({"name": "c"}), Ok("c")),
            (json!({"name": "c", "qos": "SYSTEM"}), Ok("c")),
            (json!({"name": ""}), Err("the path is the root of the hierarchy")),
            (
                json!({"name": "c", "qos": "BE", "cgroupPath": {"base": "CgroupRoot", "parentDir": "x", "relativePath": "y"}}),
                Ok("x/y"),
            ),
            (json!({"name": "c", "cgroupPath": {"base": "Kubepods", "parentDir": "/x/"}}), Ok("kubepods/x")),
            (
                json!({"name": "d", "cgroupPath": {"base": "KubepodsBesteffort", "parentDir": "hadoop/", "relativePath": "yarn"}}),
                Ok("kubepods/besteffort/hadoop/yarn"),
            ),
            (json!({"name": "e", "cgroupPath": {"parentDir": "/a//", "relativePath": "./b"}}), Ok("a/b")),
            (
                json!({"name": "f", "cgroupPath": {"parentDir": "a/../..", "relativePath": "b"}}),
                Err("\"/a/../../b\" leaves the hierarchy of cgroups"),
            ),
            (json!({"name": "g", "cgroupPath": {}}), Err("the path is the root of the hierarchy")),
            (
                json!({"name": "h", "cgroupPath": {"base": "Pods", "parentDir": "a"}}),
                Err("base \"Pods\" is none of CgroupRoot, Kubepods, KubepodsBurstable and KubepodsBesteffort"),
            ),
        ] {
            let application: HostApplicationSpec = serde_json::from_value(application).unwrap();
            let found = host_application_cgroup(layout, &application);
            assert_eq!(found.as_ref().map(CgroupPath::as_str).map_err(String::as_str), cgroup);
        }
    }
}
