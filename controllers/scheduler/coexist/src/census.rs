//! Which scheduler places pods where, and pods that wait for a scheduler that does not run.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use koord_program::{
    findings::Report,
    names::{few, question},
};

use crate::{
    DEFAULT_SCHEDULER, Ours, Situation,
    gangs::Gangs,
    world::{Pod, World},
};

/// How long a scheduler may take to report something about a new pod.
const REPORTED_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// What a scheduler has in the cluster.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Share<'w> {
    /// Its pods on nodes, without those of DaemonSets.
    pub(crate) pods: usize,
    /// Pods of DaemonSets on nodes.
    pub(crate) daemons: usize,
    /// Pods without a node.
    pub(crate) waiting: usize,
    /// The nodes of its pods, without those of DaemonSets.
    pub(crate) nodes: BTreeSet<&'w str>,
}

/// How many pods each scheduler has on a node.
pub(crate) type Counts<'w> = BTreeMap<&'w str, usize>;

/// Which scheduler has what.
pub(crate) struct Census<'w> {
    pub(crate) schedulers: BTreeMap<&'w str, Share<'w>>,
    /// The nodes on which pods of koord-scheduler and of others are, those of DaemonSets apart.
    pub(crate) shared: BTreeMap<&'w str, Counts<'w>>,
}

impl<'w> Census<'w> {
    pub(crate) fn of(world: &'w World, ours: &Ours) -> Self {
        let mut schedulers = BTreeMap::<&str, Share<'_>>::new();
        let mut shared = BTreeMap::<&str, Counts<'_>>::new();
        for pod in &world.pods {
            let share = schedulers.entry(pod.scheduler.as_str()).or_default();
            match pod.node.as_deref() {
                None => share.waiting += 1,
                Some(_) if pod.is_daemon => share.daemons += 1,
                Some(node) => {
                    share.pods += 1;
                    share.nodes.insert(node);
                    *shared.entry(node).or_default().entry(pod.scheduler.as_str()).or_default() += 1;
                }
            }
        }
        shared.retain(|_, pods| {
            let of_ours = pods.keys().filter(|scheduler| ours.serves(scheduler)).count();
            of_ours > 0 && of_ours < pods.len()
        });
        Self { schedulers, shared }
    }

    /// How many of the shared nodes have pods of a scheduler.
    pub(crate) fn shared_by(&self, scheduler: &str) -> usize {
        self.shared.values().filter(|pods| pods.contains_key(scheduler)).count()
    }
}

pub(crate) fn look(situation: &Situation<'_>, report: &mut Report) {
    shared_nodes(situation, report);
    unserved(situation, report);
}

fn shared_nodes(Situation { ours, census, .. }: &Situation<'_>, report: &mut Report) {
    if census.shared.is_empty() {
        return;
    }
    let nodes: Vec<String> = census.shared.keys().map(|node| (*node).to_owned()).collect();
    let of_nodes = census.shared.values().flat_map(BTreeMap::keys);
    let others: BTreeSet<&str> = of_nodes.copied().filter(|scheduler| !ours.serves(scheduler)).collect();
    let others: Vec<String> = others.into_iter().map(str::to_owned).collect();
    report.warning(
        format!("Node {}", few(&nodes)),
        format!(
            "koord-scheduler shares them with {}: each decides before it sees what the other has just placed, and the kubelet rejects a pod for which \
             too little is left (OutOfcpu, OutOfmemory)",
            few(&others)
        ),
        "give each scheduler nodes of its own (a taint and a label, with tolerations and nodeSelector in the pods), or all pods one scheduler \
         (schedulerName in a ClusterColocationProfile); koord_scheduler_node_conflicts_total counts rejected pods",
    );
}

/// Pods of which no scheduler has ever reported anything.
fn unserved(Situation { world, ours, census, now, .. }: &Situation<'_>, report: &mut Report) {
    let mut waiting = BTreeMap::<&str, Vec<String>>::new();
    let is_old = |created| now.duration_since(created) > REPORTED_WITHIN;
    let waits = |pod: &&Pod| pod.node.is_none() && !pod.is_reported && pod.created.is_some_and(is_old);
    let (gangs, mut incomplete) = (Gangs::of(world), BTreeMap::<String, Vec<String>>::new());
    for pod in world.pods.iter().filter(waits) {
        // A scheduler reports nothing about members that it does not try.
        match pod.gang.as_ref().and_then(|member| gangs.held_by(&member.gang)) {
            Some(reason) => incomplete.entry(reason).or_default().push(pod.key.clone()),
            None => waiting.entry(pod.scheduler.as_str()).or_default().push(pod.key.clone()),
        }
    }
    for (reason, pods) in incomplete {
        report.note(
            format!("Pod {}", few(&pods)),
            format!("not tried yet by any scheduler: {reason}"),
            "create the missing pods, or lower minMember of the PodGroup or the annotation min-available of the pods",
        );
    }
    for (scheduler, pods) in waiting {
        let working = census.schedulers.iter().filter(|(_, share)| share.pods > 0).map(|(name, _)| *name);
        let known = working.chain(ours.names.iter().map(String::as_str)).chain([DEFAULT_SCHEDULER]);
        let known: BTreeSet<&str> = known.filter(|name| *name != scheduler).collect();
        let remedy = if ours.serves(scheduler) {
            "see whether koord-scheduler leads and what it says: koordctl doctor --only lease; kubectl -n koordinator-system logs deploy/koord-scheduler"
                .to_owned()
        } else {
            let meant = question(scheduler, known).map(|question| format!("; {question}")).unwrap_or_default();
            format!("run the scheduler of this name, or create the pods with the schedulerName of one that runs{meant}")
        };
        report.error(
            format!("Pod {}", few(&pods)),
            format!("schedulerName is {scheduler:?}, and no scheduler has reported anything about them: none of this name runs"),
            remedy,
        );
    }
}
