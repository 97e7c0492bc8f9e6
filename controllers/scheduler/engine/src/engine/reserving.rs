//! The pod gets what it needs on the node that was chosen, and plugins say whether it is bound at once.

use std::{sync::Arc, time::Duration};

use koord_core::clock::Moment;

use super::{Engine, Outcome, laps::Part, refusing::rejected, waiting::Waiting};
use crate::{
    cluster::Cluster,
    columns::Row,
    cycle::{Found, Profile, Verdict},
    framework::{Orders, PermitResult, Reason, Rejection, Request},
    hold::{Holds, Resized},
    pod::{Pod, Template},
    queue::Tried,
    timing::Point,
};

/// How long a pod waits after Permit at most, whatever plugins want.
const PERMIT_WAIT_MAX: Duration = Duration::from_mins(15);

impl Engine {
    /// Gives the pod what it needs on the node, and puts it there.
    pub(super) fn reserve(
        &mut self,
        profile: &Arc<Profile>,
        pod: &Arc<Pod>,
        tried: Tried,
        (row, score, ties): (Row, i64, u32),
        now: Moment,
    ) -> Outcome {
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        let node = self.cluster.node(row).map(|node| Arc::clone(&node.name)).unwrap_or_default();
        self.cluster.hide_on(row);
        let mut holds = Holds::default();
        let mut given = profile.among(&profile.reserves).map(|(index, plugin)| {
            let Some(point) = &plugin.reserve else { return Ok(()) };
            let reserve = || point.reserve(&request, &self.cluster, row, &mut holds);
            self.laps.call(plugin, Point::Reserve, reserve).map_err(|rejection| (index, rejection))
        });
        let refused = given.find_map(Result::err);
        self.laps.end(Part::Reserve, refused.is_none());
        if let Some(refused) = refused {
            return self.refuse_in_reserve(profile, pod, tried, refused, now);
        }
        self.cluster.show();
        self.cluster.nominate(pod, None);
        self.cluster.place(resized(pod, &holds), &node, holds);
        let mut orders = Orders::default();
        let permitted = self.permit(profile, &request, &mut orders);
        self.laps.end(Part::Permit, permitted.is_ok());
        let outcome = match permitted {
            Err((index, message)) => {
                let (refused_by, refused) = rejected(profile, index, Rejection::unschedulable(message));
                self.unreserve(pod, tried, refused.why(refused_by), true, now);
                Outcome::Refused(refused)
            }
            Ok(wait) => {
                let (limit, plugin) = wait.unwrap_or_default();
                let (pod, until, began) = (Arc::clone(pod), now + limit, now);
                let reserved =
                    Waiting { pod, tried, began, node: Arc::clone(&node), score, ties, plugin, until, limit };
                if wait.is_none() {
                    self.bind(&reserved)
                } else {
                    self.waiting.insert(reserved);
                    Outcome::Waiting { node }
                }
            }
        };
        self.carry_out(orders, now);
        outcome
    }

    /// Whether the pod is bound at once: none where it is, or else for how long it waits and for which plugin. An error where a plugin
    /// rejects it.
    fn permit(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        orders: &mut Orders,
    ) -> Result<Option<(Duration, u8)>, (u8, Reason)> {
        let mut wait = None;
        for (index, plugin) in profile.among(&profile.permits) {
            let Some(point) = &plugin.permit else { continue };
            let permit = || point.permit(request, &mut self.cluster, orders);
            match self.laps.call(plugin, Point::Permit, permit) {
                PermitResult::Allow => {}
                PermitResult::Wait(limit) => {
                    let limit = limit.min(PERMIT_WAIT_MAX);
                    wait = wait.filter(|(known, _)| *known <= limit).or(Some((limit, index)));
                }
                PermitResult::Reject(message) => return Err((index, message)),
            }
        }
        Ok(wait)
    }

    /// The node that was chosen cannot give the pod what it needs.
    pub(super) fn refuse_in_reserve(
        &mut self,
        profile: &Profile,
        pod: &Arc<Pod>,
        tried: Tried,
        (index, rejection): (u8, Rejection),
        now: Moment,
    ) -> Outcome {
        self.cluster.show();
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        let orders = self.after_refusal(&request, &Found::Never(index, rejection.clone()));
        self.make_room(pod, None, now);
        self.carry_out(orders, now);
        let (refused_by, mut refused) = rejected(profile, index, rejection);
        if refused.is_error {
            refused.message = format!("running Reserve plugin {:?}: {}", profile.name_of(index), refused.message);
        }
        self.give_back(pod, tried, refused.why(refused_by), now);
        Outcome::Refused(refused)
    }
}

impl Profile {
    /// The refusal of Reserve among those of nodes, if there is one.
    pub(super) fn of_reserve(&self, found: &Found, cluster: &Cluster) -> Option<(u8, Rejection)> {
        let Found::Nothing(refusals) = found else { return None };
        refusals.iter().find_map(|(Verdict { plugin, refusal }, _)| {
            let filter = self.plugins.get(usize::from(*plugin))?.filter.as_ref()?;
            let is_of_reserve = filter.is_of_reserve(refusal);
            is_of_reserve.then(|| (*plugin, Rejection::unschedulable(filter.reasons(refusal, cluster))))
        })
    }
}

/// The pod as it requests what it was given.
fn resized(pod: &Arc<Pod>, holds: &Holds) -> Arc<Pod> {
    let Some(resized) = holds.get::<Resized>() else { return Arc::clone(pod) };
    let template = Template { requests: resized.over(&pod.template.requests), ..Template::clone(&pod.template) };
    Arc::new(Pod { template: Arc::new(template), ..Pod::clone(pod) })
}
