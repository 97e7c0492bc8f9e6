//! A lease that is shared with a program in Go: its holder does what client-go 0.34 does (`tools/leaderelection`), with its own record of what
//! it has seen, and our manager stands beside it.

use std::time::{Duration, Instant};

use envtest::shell::Server;
use http::Method;
use jiff::Timestamp;
use koord_runtime::{lease::LeaderElectionConfig, reflector::Initial};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::manager::{manager, send, server};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cards";
const RETRY: Duration = Duration::from_millis(50);

/// client-go's elector with a lease of one second.
struct GoElector<'a> {
    server: &'a Server,
    identity: &'static str,
    /// The record that was seen last, and when.
    observed: Option<(Value, Instant)>,
}

impl<'a> GoElector<'a> {
    fn new(server: &'a Server, identity: &'static str) -> Self {
        Self { server, identity, observed: None }
    }

    fn is_leader(&self) -> bool {
        self.observed.as_ref().is_some_and(|(record, _)| record["holderIdentity"] == self.identity)
    }

    fn is_lease_valid(&self) -> bool {
        self.observed.as_ref().is_some_and(|(record, seen)| {
            seen.elapsed() < Duration::from_secs(record["leaseDurationSeconds"].as_u64().unwrap_or(0))
        })
    }

    /// `tryAcquireOrRenew`: the whole spec is written anew.
    fn try_acquire_or_renew(&mut self) -> bool {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let mut record = json!({"holderIdentity": self.identity, "leaseDurationSeconds": 1, "leaseTransitions": 0,
                                "acquireTime": now, "renewTime": now});
        let mut lease = send(self.server, Method::GET, LEASE, &Value::Null);
        if lease["code"] == 404 {
            let lease = json!({"metadata": {"namespace": "kube-system", "name": "cards"}, "spec": record});
            return self.wrote(&send(self.server, Method::POST, LEASES, &lease));
        }
        let old = lease["spec"].clone();
        if self.observed.as_ref().is_none_or(|(known, _)| *known != old) {
            self.observed = Some((old.clone(), Instant::now()));
        }
        let held = old["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
        if held && self.is_lease_valid() && !self.is_leader() {
            return false;
        }
        let transitions = old["leaseTransitions"].as_i64().unwrap_or(0);
        if self.is_leader() {
            record["acquireTime"] = old["acquireTime"].clone();
            record["leaseTransitions"] = transitions.into();
        } else {
            record["leaseTransitions"] = (transitions + 1).into();
        }
        lease["spec"] = record;
        self.wrote(&send(self.server, Method::PUT, LEASE, &lease))
    }

    /// `release`, as with ReleaseOnCancel.
    fn release(&mut self) {
        let mut lease = send(self.server, Method::GET, LEASE, &Value::Null);
        assert!(self.is_leader());
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        lease["spec"] = json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": lease["spec"]["leaseTransitions"],
                               "acquireTime": now, "renewTime": now});
        assert!(self.wrote(&send(self.server, Method::PUT, LEASE, &lease)));
    }

    fn wrote(&mut self, answer: &Value) -> bool {
        let went_well = answer["kind"] == "Lease";
        if went_well {
            self.observed = Some((answer["spec"].clone(), Instant::now()));
        }
        went_well
    }
}

/// Ours, standing for election until it is stopped.
struct Ours {
    leads: tokio::sync::watch::Receiver<bool>,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

impl Ours {
    fn stand(server: &Server) -> Self {
        Self::stand_trying_every(RETRY, server)
    }

    fn stand_trying_every(retry: Duration, server: &Server) -> Self {
        let leader_election = LeaderElectionConfig {
            lease: Duration::from_secs(1),
            renew: Duration::from_millis(700),
            retry,
            ..LeaderElectionConfig::new("kube-system", "cards", "ours")
        };
        let manager = manager(server, Initial::Stream, Some(leader_election));
        let (leads, stop) = (manager.leading(), CancellationToken::new());
        let ends = stop.clone();
        let running = tokio::spawn(async move { manager.run(ends).await.unwrap() });
        Self { leads, stop, running }
    }

    async fn comes_to_lead(&mut self) {
        tokio::time::timeout(Duration::from_secs(10), self.leads.wait_for(|leads| *leads)).await.unwrap().unwrap();
    }

    async fn stop(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

fn spec(server: &Server) -> Value {
    send(server, Method::GET, LEASE, &Value::Null)["spec"].clone()
}

/// The fields of a record without its times, and how its times are written.
fn form(spec: &Value) -> (Value, Vec<usize>) {
    let times = ["acquireTime", "renewTime"].map(|field| spec[field].as_str().unwrap().len()).to_vec();
    let mut rest = spec.clone();
    for field in ["acquireTime", "renewTime"] {
        rest.as_object_mut().unwrap().remove(field);
    }
    (rest, times)
}

#[tokio::test]
async fn while_a_holder_in_go_renews_we_wait_and_when_it_gives_the_lease_back_we_lead_at_once() {
    let server = server();
    let mut go = GoElector::new(&server, "go");
    assert!(go.try_acquire_or_renew());
    let mut ours = Ours::stand(&server);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        assert!(go.try_acquire_or_renew(), "nobody disturbs the holder");
        assert!(!*ours.leads.borrow(), "there is one leader");
        tokio::time::sleep(RETRY).await;
    }
    go.release();
    let begin = Instant::now();
    ours.comes_to_lead().await;
    assert!(begin.elapsed() < Duration::from_millis(900), "it is not waited for the end of the lease");
    let taken = spec(&server);
    assert_eq!(taken["leaseTransitions"], 1);
    assert!(!go.try_acquire_or_renew(), "it sees that we lead");
    ours.stop().await;
}

#[tokio::test]
async fn a_holder_in_go_that_dies_is_succeeded_when_its_lease_ends() {
    let server = server();
    let mut go = GoElector::new(&server, "go");
    assert!(go.try_acquire_or_renew());
    let begin = Instant::now();
    let mut ours = Ours::stand(&server);
    ours.comes_to_lead().await;
    assert!(begin.elapsed() >= Duration::from_secs(1), "not before");
    assert_eq!(form(&spec(&server)).0["leaseTransitions"], 1);
    ours.stop().await;
}

#[tokio::test]
async fn a_lease_that_ends_is_taken_by_a_candidate_that_tries_seldom() {
    let server = server();
    assert!(GoElector::new(&server, "go").try_acquire_or_renew());
    let begin = Instant::now();
    let mut ours = Ours::stand_trying_every(Duration::from_secs(30), &server);
    ours.comes_to_lead().await;
    assert!(
        (Duration::from_secs(1)..Duration::from_secs(5)).contains(&begin.elapsed()),
        "when it ends, and not before"
    );
    ours.stop().await;
}

#[tokio::test]
async fn a_holder_in_go_takes_over_at_once_when_we_stop_and_reads_what_we_wrote() {
    let server = server();
    let mut ours = Ours::stand(&server);
    ours.comes_to_lead().await;
    let mut go = GoElector::new(&server, "go");
    assert!(!go.try_acquire_or_renew());
    let of_ours = form(&spec(&server));
    ours.stop().await;
    assert_eq!(form(&spec(&server)).0, json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0}));
    assert!(go.try_acquire_or_renew(), "at once");
    let of_go = form(&spec(&server));
    assert_eq!(of_go.1, of_ours.1, "times are written alike");
    assert_eq!(of_go.0, json!({"holderIdentity": "go", "leaseDurationSeconds": 1, "leaseTransitions": 1}));
    assert_eq!(of_ours.0, json!({"holderIdentity": "ours", "leaseDurationSeconds": 1, "leaseTransitions": 0}));
}

#[tokio::test]
async fn when_we_die_a_holder_in_go_waits_for_the_end_of_our_lease() {
    let server = server();
    let mut ours = Ours::stand(&server);
    ours.comes_to_lead().await;
    ours.running.abort();
    let begin = Instant::now();
    let mut go = GoElector::new(&server, "go");
    while !go.try_acquire_or_renew() {
        assert!(begin.elapsed() < Duration::from_secs(10), "the lease never ends");
        tokio::time::sleep(RETRY).await;
    }
    assert!(begin.elapsed() >= Duration::from_secs(1), "not before");
}
