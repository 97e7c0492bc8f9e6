//! Calls of container runtimes that were answered, and what is done on the node for them.

use std::path::Path;

use koord_core::clock::Moment;
use koord_koordlet_hooks::{Effect, Response};
use koord_koordlet_resolver::{MountedFiles, Outcome, Resolver};

use crate::resctrl_groups::{GroupChange, ensure_group, recreate, remove_group};

/// A call that was answered.
#[derive(Clone, Debug)]
pub struct Called {
    pub(crate) response: Response,
    pub(crate) done: Done,
}

/// What was done for a call before it was answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) groups: Vec<GroupChange>,
}

/// Files of the pod and effects of a response. The files are compared with the kernel, and written in the order of the resolver.
pub(crate) fn carry_out(response: &Response, files: &mut MountedFiles, resctrl: &Path, now: Moment) -> Done {
    let mut done = Done { groups: effects(response, files, resctrl), ..Done::default() };
    if !response.constraints.0.is_empty() {
        let mut resolver = Resolver::new(std::time::Duration::MAX);
        resolver.submit("RuntimeHooks", response.constraints.clone());
        done.outcome = resolver.pass(now, files);
    }
    done
}

/// The effects of a response.
pub(crate) fn effects(response: &Response, files: &mut MountedFiles, resctrl: &Path) -> Vec<GroupChange> {
    let mut groups = Vec::new();
    for effect in &response.effects {
        match effect {
            Effect::EnsureGroup(group) => {
                groups.push(ensure_group(files.writer(), resctrl, &group.name, &group.schemata, &group.tasks));
            }
            Effect::RemoveGroup(group) => groups.push(remove_group(files.writer(), resctrl, group)),
            Effect::RecreateFolder(folder) => {
                if let Err(error) = recreate(folder) {
                    tracing::warn!(folder = %folder.display(), %error, "a folder for a container cannot be made");
                }
            }
        }
    }
    groups
}
