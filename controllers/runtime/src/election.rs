//! The task that stands for election and says who leads.

use koord_resource::controller::ResourceKind;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    api::{Api, refused},
    clock::SharedClock,
    lease::{Candidacy, Election, Lease, Step},
    metrics::Metrics,
    random::Random,
    write::WireRequest,
};

/// Stands for election until `stop`, and shows in `leading` whether this process leads. Gives the lease back when
/// `idle` says that nobody works in its name any more.
/// The clock must run in real time: other replicas have no other.
pub(crate) async fn stand(
    candidacy: Candidacy,
    api: Api,
    clock: SharedClock,
    random: Random,
    metrics: Metrics,
    leading: watch::Sender<bool>,
    (stop, idle): (CancellationToken, CancellationToken),
) {
    let gauge = metrics.leader.with_label_values(&[candidacy.name.as_str()]);
    let mut candidate = Candidate { election: Election::new(candidacy), api, clock };
    loop {
        let in_time = candidate.clock.sleep(candidate.election.patience(candidate.clock.moment()));
        let tried = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            tried = candidate.attempt() => tried,
            () = in_time => Err("the API server did not answer in time".to_owned()),
        };
        if let Err(reason) = tried {
            tracing::debug!(reason, "the lease could not be written");
        }
        let leads = candidate.election.leads(candidate.clock.moment());
        let changed = leading.send_if_modified(|shown| std::mem::replace(shown, leads) != leads);
        gauge.set(i64::from(leads));
        let lease = candidate.election.candidacy().name.as_str();
        match (changed, leads) {
            (true, true) => tracing::info!(lease, "leading"),
            (true, false) => tracing::warn!(lease, leader = candidate.election.leader(), "no longer leading"),
            (false, _) => {}
        }
        let retry = candidate.election.candidacy().retry;
        // A leader renews on time; candidates spread their tries.
        let pause = if leads { retry } else { random.jitter(retry, 1.2) };
        tokio::select! { biased; () = stop.cancelled() => break, () = candidate.clock.sleep(pause) => {} }
    }
    leading.send_replace(false);
    gauge.set(0);
    // A write that was begun may still be on its way; who takes over must not meet it.
    idle.cancelled().await;
    if let Err(reason) = candidate.release().await {
        tracing::debug!(reason, "the lease could not be given back");
    }
}

struct Candidate {
    election: Election,
    api: Api,
    clock: SharedClock,
}

impl Candidate {
    async fn attempt(&mut self) -> Result<(), String> {
        let lease = self.fetch().await?;
        let moment = self.clock.moment();
        match self.election.read(lease, self.clock.now(), moment) {
            Step::Stand => Ok(()),
            Step::Create(lease) => {
                let uri = ResourceKind::LEASE.url_path(&self.election.candidacy().namespace, None);
                self.put("POST", uri, &lease).await?;
                self.election.written(&lease, moment);
                Ok(())
            }
            Step::Update(lease) => {
                self.put("PUT", self.uri(), &lease).await?;
                self.election.written(&lease, moment);
                Ok(())
            }
        }
    }

    async fn release(&self) -> Result<(), String> {
        if !self.election.candidacy().release {
            return Ok(());
        }
        let Some(lease) = self.fetch().await? else { return Ok(()) };
        match self.election.release(lease, self.clock.now()) {
            Some(lease) => self.put("PUT", self.uri(), &lease).await,
            None => Ok(()),
        }
    }

    async fn fetch(&self) -> Result<Option<Lease>, String> {
        let answer = self.api.get(self.uri()).await.map_err(|failure| failure.message)?;
        match answer.code {
            404 => Ok(None),
            200 => serde_json::from_str(&answer.body).map(Some).map_err(|error| error.to_string()),
            _ => Err(refused(&answer).message),
        }
    }

    async fn put(&self, method: &'static str, uri: String, lease: &Lease) -> Result<(), String> {
        let mut body = serde_json::to_value(lease).map_err(|error| error.to_string())?;
        body["apiVersion"] = ResourceKind::LEASE.api_version().into();
        body["kind"] = ResourceKind::LEASE.kind.into();
        let request = WireRequest { method, uri, content_type: "application/json", body: body.to_string() };
        let answer = self.api.call(&request).await.map_err(|failure| failure.message)?;
        if answer.is_success() { Ok(()) } else { Err(refused(&answer).message) }
    }

    fn uri(&self) -> String {
        let candidacy = self.election.candidacy();
        ResourceKind::LEASE.url_path(&candidacy.namespace, Some(&candidacy.name))
    }
}
