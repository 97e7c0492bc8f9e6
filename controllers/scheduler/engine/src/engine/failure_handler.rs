//! The failure of an attempt: its diagnosis, preemption, and what is reported.

use std::{collections::BTreeSet, sync::Arc};

use koord_core::clock::Moment;
use koord_scheduler_framework::{
    Alike, AttemptState, Code, Found, Operands, Orders, PluginSet, Profile, Rejection, Request, Verdict,
    cluster::Cluster, columns::Row, extender::Victims, pod::Pod, unavailable,
};

use super::{
    Engine, PreemptionOutcome, Refused,
    latency::AttemptPart,
    preemption::PostFilterOutcome,
    verdicts::{NodeClass, Why},
};
use crate::queue::Return;

impl Engine {
    /// No node takes the pod: it preempts others, if there is a candidate. An error where extenders are to be called about these victims first.
    pub(super) fn refuse(
        &mut self,
        profile: &Arc<Profile>,
        pod: &Arc<Pod>,
        found: &Found,
        state: &AttemptState,
        now: Moment,
    ) -> Result<(PluginSet, Refused), Victims> {
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins, state };
        let (refused_by, mut message) = words(profile, &request, found, &self.cluster);
        let by = node_classes(profile, &request, found, &self.cluster);
        if matches!(found, Found::Never(_, Rejection { code: Code::Error, .. })) {
            self.cluster.include_all();
            let orders = self.after_refusal(&request, found);
            self.nominate(pod, None, now);
            self.apply_orders(orders, now);
            return Ok((refused_by, Refused { message, is_error: true, by, ..Refused::default() }));
        }
        let runs_post_filters = !self.cluster.is_empty() && !profile.post_filters.is_empty();
        let PostFilterOutcome {
            nominated,
            together,
            preemptor,
            mut words,
            is_hopeless,
            last_preemptor,
            mut preemption,
        } = self.run_post_filters(profile, &request, found)?;
        self.latencies.end(AttemptPart::PostFilter, nominated.is_some());
        self.cluster.include_all();
        let mut rows: BTreeSet<Row> = together.iter().map(|(_, row)| *row).collect();
        for (other, row) in together.into_iter().filter(|(uid, _)| *uid != pod.uid) {
            if let Some(other) = self.cluster.pending_pod(&other).cloned() {
                self.cluster.nominate(&other, Some(row));
            }
        }
        words.retain(|word| !word.is_empty());
        if !words.is_empty() {
            message = format!("{message} {}", words.join(", "));
        }
        let orders = self.after_refusal(&request, found);
        let nomination =
            self.cluster.nomination(&pod.uid).filter(|_| runs_post_filters && !is_hopeless && !pod.is_reservation());
        let (row, victims) = nominated.map_or((nomination, Vec::new()), |(row, victims)| (Some(row), victims));
        if !victims.is_empty() {
            preemption = PreemptionOutcome::Found(victims.clone());
        } else if row.is_some() {
            preemption = PreemptionOutcome::Awaited;
        }
        self.nominate(pod, row, now);
        let (unbound, victims): (Vec<_>, Vec<_>) = victims.into_iter().partition(|uid| self.waiting.contains(uid));
        let victims = victims.iter().filter_map(|uid| self.cluster.pod(uid)).map(|placed| &placed.pod);
        // Whose graceful deletion has begun already is not deleted once more.
        let victims: Vec<Arc<Pod>> = victims.filter(|victim| !victim.deleting).cloned().collect();
        for victim in &victims {
            self.cluster.evict(&victim.uid, &pod.uid);
        }
        if !victims.is_empty() {
            rows.extend(row);
            self.supersede(pod, &rows, now);
        }
        self.apply_orders(orders, now);
        let node = row.and_then(|row| self.cluster.node(row)).map(|node| Arc::clone(&node.name));
        let withdrawn = unbound.iter().filter_map(|uid| self.preempt_waiting(uid, last_preemptor, now)).collect();
        let refused = Refused {
            message,
            is_error: false,
            nominated: node,
            victims,
            preemptor,
            withdrawn,
            ran_post_filters: runs_post_filters,
            preemption,
            by,
        };
        Ok((refused_by, refused))
    }

    /// The orders of plugins after a failed attempt.
    pub(super) fn after_refusal(&mut self, request: &Request<'_>, found: &Found) -> Orders {
        let mut orders = Orders::default();
        for point in request.each(|plugin| &plugin.failure_handler) {
            point.attempt_failed(request, found, &mut self.cluster, &mut orders);
        }
        orders
    }
}

/// The refusal of a pod that was rejected on the chosen node.
pub(super) fn rejected(profile: &Profile, plugin: u8, rejection: Rejection) -> (PluginSet, Refused) {
    let is_error = rejection.code == Code::Error;
    let each = || rejection.reasons.iter().map(|reason| (reason.text.clone(), 1)).collect();
    let message = if is_error { rejection.message() } else { unavailable(&each(), 1) };
    let by = Arc::from([refused_as_a_whole(profile, plugin, rejection)]);
    (PluginSet::of(plugin), Refused { message, is_error, by, ..Refused::default() })
}

impl Refused {
    pub(super) fn why(&self, refused_by: PluginSet) -> Return {
        if self.is_error { Return::Failed } else { Return::Refused(refused_by) }
    }
}

/// Who refused the pod, by alike nodes.
fn node_classes(profile: &Profile, request: &Request<'_>, found: &Found, cluster: &Cluster) -> Arc<[NodeClass]> {
    let class = |(verdict, alike): (&Verdict, &Alike)| NodeClass {
        plugin: profile.name_of(verdict.plugin),
        nodes: Some(alike.nodes),
        example: cluster.node(alike.example).map(|node| Arc::clone(&node.name)),
        input_age: profile.input_age(verdict.plugin, cluster, alike.example),
        details: verdict.details(request, cluster, alike.example),
        why: Why::Verdict(*verdict),
    };
    match found {
        Found::Node { .. } => Arc::default(),
        Found::Never(plugin, rejection) => Arc::from([refused_as_a_whole(profile, *plugin, rejection.clone())]),
        Found::Nothing(refusals) => refusals.iter().map(class).collect(),
    }
}

/// A plugin refused the pod as a whole.
fn refused_as_a_whole(profile: &Profile, plugin: u8, rejection: Rejection) -> NodeClass {
    let why = Why::Reasons(rejection.reasons);
    let (plugin, details) = (profile.name_of(plugin), Operands::new());
    NodeClass { plugin, nodes: None, example: None, input_age: None, details, why }
}

/// Who refused the pod, and what is said about it.
fn words(profile: &Profile, request: &Request<'_>, found: &Found, cluster: &Cluster) -> (PluginSet, String) {
    let refused_by = match found {
        _ if cluster.is_empty() => PluginSet::default(),
        Found::Node { .. } => PluginSet::default(),
        Found::Never(plugin, _) => profile.rejecting(*plugin, request, cluster),
        Found::Nothing(refusals) => {
            refusals.iter().fold(PluginSet::default(), |set, (verdict, _)| set.union(verdict.plugins()))
        }
    };
    (refused_by, found.words(&profile.plugins, cluster))
}
