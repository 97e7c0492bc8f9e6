//! What is done on the node besides files with one value: resctrl groups, switches of the system, OOM scores.

use std::path::PathBuf;

use koord_koordlet_hooks::{OomScore, Switch, groups_to_remove};
use koord_koordlet_qos::{ResctrlGroup, SystemWrite};
use koord_koordlet_system::{
    is_gone, oom_score_adjustment_path, read,
    resctrl::{DomainValues, Schemata},
};

use super::{Agent, Now};
use crate::{
    audit::{AuditEvent, Subject},
    resctrl_groups::{GroupChange, ensure_group, remove_group},
};

const RESCTRL: &str = "resctrl";

impl Agent {
    pub(super) fn resctrl_folder(&self) -> PathBuf {
        self.settings.roots.sys_fs.join(RESCTRL)
    }

    /// Makes a group of a class, and gives it what it shall have.
    pub(super) fn ensure_group(&mut self, group: &ResctrlGroup, now: Now) {
        let root = self.resctrl_folder();
        let Some(known) = read(&root.join("schemata")).ok().and_then(|text| Schemata::parse(&text).ok()) else {
            let reason = format!("{} is not mounted, or has no schemata", root.display());
            self.capabilities.degraded(RESCTRL, reason, "mount resctrl: mount -t resctrl resctrl /sys/fs/resctrl");
            return;
        };
        let values = |domains: &DomainValues, value: Option<u64>| {
            value.map(|value| DomainValues::uniform(domains, value)).unwrap_or_default()
        };
        let schemata =
            Schemata { l3: values(&known.l3, group.l3), bandwidth: values(&known.bandwidth, group.bandwidth) };
        self.set_group(&group.name, &schemata, &group.tasks, now);
    }

    pub(super) fn set_group(&mut self, name: &str, schemata: &Schemata, tasks: &[u32], now: Now) {
        let folder = self.resctrl_folder();
        let change = ensure_group(self.files.writer(), &folder, name, schemata, tasks);
        self.group_changed(change, now);
    }

    /// Audits what was done for a group.
    pub(super) fn group_changed(&mut self, change: GroupChange, now: Now) {
        for (path, text) in &change.written {
            let message = format!("update {} to {text}", path.display());
            let event = AuditEvent::of(Subject::Group, 3, &change.name, "UpdateResctrlSchemata", message, now.time);
            self.audit(&event, now);
        }
        if let Some(folder) = &change.removed {
            let message = format!("remove {}", folder.display());
            let event = AuditEvent::of(Subject::Group, 3, &change.name, "RemoveResctrlGroup", message, now.time);
            self.audit(&event, now);
        }
        match change.refused {
            Some((reason, remedy)) => {
                self.capabilities.degraded(RESCTRL, reason, remedy);
            }
            None if !change.written.is_empty() => {
                self.capabilities.active(RESCTRL);
            }
            None => {}
        }
    }

    /// Removes groups of pods that are gone.
    pub(super) fn remove_unneeded_groups(&mut self, needed: &std::collections::BTreeSet<String>, now: Now) {
        let root = self.resctrl_folder();
        let groups = koord_koordlet_system::folders(&root).unwrap_or_default();
        let aged: Vec<(String, std::time::Duration)> = groups
            .into_iter()
            .filter_map(|group| {
                let made = std::fs::metadata(root.join(&group)).ok()?.modified().ok()?;
                let made = jiff::Timestamp::try_from(made).ok()?;
                Some((group, std::time::Duration::try_from(now.time.duration_since(made)).unwrap_or_default()))
            })
            .collect();
        let unneeded: Vec<String> = groups_to_remove(aged.iter().map(|(group, age)| (group.as_str(), *age)), needed)
            .into_iter()
            .map(str::to_owned)
            .collect();
        for group in unneeded {
            let change = remove_group(self.files.writer(), &root, &group);
            self.group_changed(change, now);
        }
    }

    /// Writes one thing into a file of the system that has many.
    pub(super) fn write_system(&mut self, write: &SystemWrite, now: Now) {
        let SystemWrite { path, text, .. } = write;
        match self.files.writer().write(path, &format!("{text}\n")) {
            Ok(()) => {
                let message = format!("update {} to {text}", path.display());
                self.audit(&AuditEvent::of(Subject::Node, 3, "", "UpdateSystemConfig", message, now.time), now);
            }
            Err(error) => tracing::warn!(path = %path.display(), text, %error, "a file of the system refuses a value"),
        }
    }

    /// Sets a switch of the kernel; returns whether it was set.
    pub(super) fn set_switch(&mut self, switch: &Switch, now: Now) -> bool {
        let path = self.settings.roots.proc.join("sys").join(switch.file);
        let text = if switch.value { "1" } else { "0" };
        match self.files.writer().write(&path, text) {
            Ok(()) => {
                let message = format!("update {} to {text}", path.display());
                self.audit(&AuditEvent::of(Subject::Node, 3, "", "UpdateSystemConfig", message, now.time), now);
                true
            }
            Err(error) => {
                let reason = format!("{} refuses {text}: {error}", path.display());
                self.capabilities.degraded("GroupIdentity", reason, "let the agent write /proc/sys of the node");
                false
            }
        }
    }

    /// Gives processes of a container the score adjustment that they shall have.
    pub(super) fn set_oom_score(&mut self, score: &OomScore, now: Now) {
        for process in &score.processes {
            let path = oom_score_adjustment_path(&self.settings.roots.proc, *process);
            let wanted = score.score.to_string();
            let shown = read(&path).unwrap_or_default();
            if String::from_utf8_lossy(&shown).trim() == wanted {
                continue;
            }
            match self.files.writer().write(&path, &wanted) {
                Ok(()) => {
                    let message = format!("update {} to {wanted}", path.display());
                    let mut event =
                        AuditEvent::of(Subject::Pod, 3, &score.pod_name, "UpdateOOMScoreAdj", message, now.time);
                    score.pod_namespace.as_ref().clone_into(&mut event.namespace);
                    score.container.as_ref().clone_into(&mut event.container);
                    self.audit(&event, now);
                }
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    let reason = format!("{} refuses {wanted}: {error}", path.display());
                    self.capabilities.degraded("OOMScoreAdj", reason, "scores are lowered with CAP_SYS_RESOURCE alone");
                }
            }
        }
    }
}
