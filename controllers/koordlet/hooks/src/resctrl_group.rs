//! Resctrl groups of single pods: their part of the L3 cache and of memory bandwidth.

use std::{collections::BTreeSet, time::Duration};

use koord_koordlet_framework::Reason;
use koord_koordlet_system::resctrl::{CacheMask, DomainValues, Schemata, Vendor};
use koord_types::pod_annotations::{RESCTRL, ResctrlSpec};

use crate::{pod_view::PodView, refused::Refused};

/// What stands before the uid of a pod in the name of its group.
pub const GROUP_PREFIX: &str = "koordlet-";
/// A group is not removed before it is this old: its pod may not be listed yet.
pub const GROUP_AGE_MIN: Duration = Duration::from_secs(10);

/// What the CPUs can give to groups.
#[derive(Clone, Debug, PartialEq)]
pub struct ResctrlMachine {
    pub vendor: Vendor,
    /// All ways of an L3 cache.
    pub ways: CacheMask,
    /// The domains of the root group, with any values.
    pub root: Schemata,
}

/// A resctrl group that must exist, with these schemata and at least these tasks. Only what differs is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResctrlGroup {
    /// The folder below `/sys/fs/resctrl`.
    pub name: String,
    pub schemata: Schemata,
    /// Ids of threads.
    pub tasks: Vec<u32>,
    pub reason: Reason,
}

/// The name of a pod's group; `None` when its uid cannot be the name of a folder.
pub(crate) fn group_name(uid: &str) -> Option<String> {
    let is_name = !uid.is_empty() && !uid.contains('/');
    is_name.then(|| format!("{GROUP_PREFIX}{uid}"))
}

/// Groups of pods that are removed: those that no pod needs and that are old enough.
pub fn groups_to_remove<'a>(
    existing: impl IntoIterator<Item = (&'a str, Duration)>,
    needed: &BTreeSet<String>,
) -> Vec<&'a str> {
    let of_pods = existing.into_iter().filter(|(group, _)| group.starts_with(GROUP_PREFIX));
    of_pods.filter(|(group, age)| *age >= GROUP_AGE_MIN && !needed.contains(*group)).map(|(group, _)| group).collect()
}

impl ResctrlMachine {
    /// The schemata of a pod's group, and whether the annotation could be read as a whole. `None` without the annotation.
    ///
    /// What the annotation does not limit, or limits in a way that is refused, is not limited at all.
    pub(crate) fn schemata(&self, pod: &PodView<'_>, refused: &mut Vec<Refused>) -> Option<(Schemata, bool)> {
        let before = refused.len();
        let spec = pod.read(&RESCTRL, refused).unwrap_or_else(|_| Some(ResctrlSpec::default()))?;
        let mut schemata = self.unlimited();
        let mut refuse = |reason: String| refused.push(pod.refusal(RESCTRL.name(), reason));
        if let Some(part) = &spec.llc {
            let general = part.schemata.as_ref().map(|schemata| (None, &schemata.range));
            let caches = part.schemata_per_cache.iter().map(|cache| (Some(cache.cache_id), &cache.range));
            for (cache, range) in general.into_iter().chain(caches) {
                match *range.as_slice() {
                    [] => {}
                    [start, end] => match self.ways.range(start, end) {
                        Ok(ways) => set(&mut schemata.l3, cache, ways).unwrap_or_else(&mut refuse),
                        Err(error) => refuse(error.to_string()),
                    },
                    _ => refuse(format!("the range {range:?} is not [start, end]")),
                }
            }
        }
        if let Some(part) = &spec.mb {
            let general = part.schemata.as_ref().and_then(|schemata| Some((None, schemata.percent?)));
            let caches =
                part.schemata_per_cache.iter().filter_map(|cache| Some((Some(cache.cache_id), cache.percent?)));
            for (cache, percent) in general.into_iter().chain(caches) {
                match self.vendor.bandwidth(percent) {
                    Some(bandwidth) => set(&mut schemata.bandwidth, cache, bandwidth).unwrap_or_else(&mut refuse),
                    None => refuse(format!("{percent} is no percentage of memory bandwidth from 1 to 100")),
                }
            }
        }
        Some((schemata, refused.len() == before))
    }

    fn unlimited(&self) -> Schemata {
        Schemata {
            l3: self.ways.range(0, 100).map(|ways| DomainValues::uniform(&self.root.l3, ways)).unwrap_or_default(),
            bandwidth: self
                .vendor
                .bandwidth(100)
                .map(|all| DomainValues::uniform(&self.root.bandwidth, all))
                .unwrap_or_default(),
        }
    }
}

impl ResctrlGroup {
    pub(crate) fn new(name: String, schemata: Schemata, tasks: Vec<u32>) -> Self {
        let reason = Reason::new(RESCTRL.name(), format!("L3 {}, MB {}", schemata.l3, schemata.bandwidth));
        Self { name, schemata, tasks, reason }
    }
}

/// Sets the value of one domain, or of all.
fn set(values: &mut DomainValues, domain: Option<i64>, value: u64) -> Result<(), String> {
    match domain {
        None => *values = DomainValues::uniform(values, value),
        Some(domain) => {
            let is_set = u32::try_from(domain).is_ok_and(|domain| values.set(domain, value));
            if !is_set {
                return Err(format!("there is no cache {domain}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::CgroupPath;
    use koord_types::protocol::Labels;

    use super::*;

    fn machine(vendor: Vendor) -> ResctrlMachine {
        let root = Schemata::parse(b"    MB:0=100;1=100\n    L3:0=7ff;1=7ff\n").unwrap();
        ResctrlMachine { vendor, ways: CacheMask::parse(b"7ff").unwrap(), root }
    }

    fn schemata(vendor: Vendor, annotation: &str) -> (String, Vec<String>) {
        let (labels, cgroup) = (Labels::new(), CgroupPath::root());
        let annotations = Labels::from([(RESCTRL.name().to_owned(), annotation.to_owned())]);
        let pod = PodView {
            namespace: "shop",
            name: "a",
            uid: "1",
            labels: &labels,
            annotations: &annotations,
            last_good: None,
            cgroup: &cgroup,
            listed: None,
        };
        let mut refused = Vec::new();
        let (schemata, _) = machine(vendor).schemata(&pod, &mut refused).unwrap();
        let text = [schemata.l3_text(), schemata.bandwidth_text()].into_iter().flatten().collect::<String>();
        (text, refused.iter().map(|refused| refused.reason.to_string()).collect())
    }

    #[test]
    fn parts_become_schemata() {
        for (vendor, annotation, text) in [
            (
                Vendor::Intel,
                r#"{"llc":{"schemata":{"range":[0,40]}},"mb":{"schemata":{"percent":30}}}"#,
                "L3:0=1f;1=1f;\nMB:0=30;1=30;\n",
            ),
            (Vendor::Intel, r#"{"llc":{"schemata":{"range":[0,50]}}}"#, "L3:0=3f;1=3f;\nMB:0=100;1=100;\n"),
            (Vendor::Intel, r#"{"mb":{"schemata":{"percent":35}}}"#, "L3:0=7ff;1=7ff;\nMB:0=40;1=40;\n"),
            (Vendor::Amd, r#"{"mb":{"schemata":{"percent":30}}}"#, "L3:0=7ff;1=7ff;\nMB:0=48;1=48;\n"),
            (
                Vendor::Intel,
                r#"{"llc":{"schemata":{"range":[0,100]},"schemataPerCache":[{"cacheID":1,"range":[0,30]}]},
                    "mb":{"schemataPerCache":[{"cacheID":0,"percent":10}]}}"#,
                "L3:0=7ff;1=f;\nMB:0=10;1=100;\n",
            ),
        ] {
            assert_eq!(schemata(vendor, annotation), (text.to_owned(), vec![]), "{annotation}");
        }
    }

    #[test]
    fn what_is_refused_is_not_limited() {
        let unlimited = "L3:0=7ff;1=7ff;\nMB:0=100;1=100;\n";
        for (annotation, text, reason) in [
            ("{", unlimited, "\"{\" is wrong"),
            (r#"{"llc":{"schemata":{"range":[40]}}}"#, unlimited, "the range [40] is not [start, end]"),
            (
                r#"{"llc":{"schemata":{"range":[40,40]}},"mb":{"schemata":{"percent":30}}}"#,
                "L3:0=7ff;1=7ff;\nMB:0=30;1=30;\n",
                "a cache range from 40 % to 40 % is not within",
            ),
            (r#"{"mb":{"schemata":{"percent":0}}}"#, unlimited, "0 is no percentage of memory bandwidth from 1 to 100"),
            (r#"{"llc":{"schemataPerCache":[{"cacheID":7,"range":[0,30]}]}}"#, unlimited, "there is no cache 7"),
        ] {
            let (found, reasons) = schemata(Vendor::Intel, annotation);
            assert_eq!(found, text, "{annotation}");
            assert!(reasons.len() == 1 && reasons[0].starts_with(reason), "{reasons:?}");
        }
    }

    #[test]
    fn old_groups_of_pods_that_are_gone_are_removed() {
        let needed = BTreeSet::from(["koordlet-1".to_owned()]);
        let seconds = Duration::from_secs;
        let existing =
            [("koordlet-1", seconds(60)), ("koordlet-2", seconds(10)), ("koordlet-3", seconds(9)), ("BE", seconds(60))];
        assert_eq!(groups_to_remove(existing, &needed), ["koordlet-2"]);
        assert_eq!((group_name("a/b"), group_name("")), (None, None));
    }
}
