//! The columns of pods.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::human::{self, NONE, integer, items, text};

/// The cells of a pod.
pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    let restarts = match summary.last_restart {
        Some(time) => format!("{} ({} ago)", summary.restarts, human::duration(now.as_second() - time.as_second())),
        None => summary.restarts.to_string(),
    };
    vec![
        human::name(pod),
        format!("{}/{}", summary.ready, summary.containers).into(),
        summary.status.into(),
        restarts.into(),
        human::age(pod, now),
        text(pod, "/status/podIPs/0/ip", NONE).into(),
        text(pod, "/spec/nodeName", NONE).into(),
        text(pod, "/status/nominatedNodeName", NONE).into(),
        readiness_gates(pod).into(),
    ]
}

/// The conditions of the row: a pod that has ended says so.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod["status"]["phase"].as_str()? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

struct Summary {
    status: String,
    ready: usize,
    containers: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

// === impl Summary ===

impl Summary {
    fn of(pod: &Value) -> Self {
        let mut status = text(pod, "/status/reason", pod["status"]["phase"].as_str().unwrap_or_default());
        if condition(pod, "PodScheduled").is_some_and(|found| found["reason"] == "SchedulingGated") {
            "SchedulingGated".clone_into(&mut status);
        }
        let sidecars = items(pod, "/spec/initContainers").filter(|container| is_sidecar(container)).count();
        let mut summary = Self {
            status,
            ready: 0,
            containers: items(pod, "/spec/containers").len() + sidecars,
            restarts: 0,
            last_restart: None,
        };
        let initializing = summary.count_init_containers(pod);
        if !initializing || is_true(condition(pod, "Initialized")) {
            summary.count_containers(pod);
        }
        if pod.pointer("/metadata/deletionTimestamp").is_some() {
            if pod["status"]["reason"] == "NodeLost" {
                "Unknown".clone_into(&mut summary.status);
            } else if !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
                "Terminating".clone_into(&mut summary.status);
            }
        }
        summary
    }

    /// Goes through the init containers up to the first that is not done; whether there was one.
    fn count_init_containers(&mut self, pod: &Value) -> bool {
        let mut sidecar_restarts = 0;
        let mut sidecar_restart = None;
        for (index, container) in items(pod, "/status/initContainerStatuses").enumerate() {
            let restarts = integer(container, "/restartCount");
            self.restarts = self.restarts.saturating_add(restarts);
            self.saw_restart(container);
            let sidecar = items(pod, "/spec/initContainers")
                .any(|declared| declared["name"] == container["name"] && is_sidecar(declared));
            if sidecar {
                sidecar_restarts += restarts;
                sidecar_restart = self.last_restart.max(sidecar_restart);
            }
            let state = &container["state"];
            if let Some(terminated) = state.get("terminated") {
                if integer(terminated, "/exitCode") == 0 {
                    continue;
                }
                self.status = format!("Init:{}", ending(terminated));
                return true;
            }
            if sidecar && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            let waiting = text(state, "/waiting/reason", "");
            self.status = if waiting.is_empty() || waiting == "PodInitializing" {
                format!("Init:{index}/{}", items(pod, "/spec/initContainers").len())
            } else {
                format!("Init:{waiting}")
            };
            return true;
        }
        self.restarts = sidecar_restarts;
        self.last_restart = sidecar_restart;
        false
    }

    fn count_containers(&mut self, pod: &Value) {
        let mut running = false;
        for container in items(pod, "/status/containerStatuses").rev() {
            self.restarts = self.restarts.saturating_add(integer(container, "/restartCount"));
            self.saw_restart(container);
            let state = &container["state"];
            let waiting = text(state, "/waiting/reason", "");
            if !waiting.is_empty() {
                self.status = waiting;
            } else if let Some(terminated) = state.get("terminated") {
                self.status = ending(terminated);
            } else if container["ready"] == true && state.get("running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        // One container may be done while others still run.
        if self.status == "Completed" && running {
            let ready = is_true(condition(pod, "Ready"));
            if ready { "Running" } else { "NotReady" }.clone_into(&mut self.status);
        }
    }

    fn saw_restart(&mut self, container: &Value) {
        let finished = container.pointer("/lastState/terminated/finishedAt").and_then(Value::as_str);
        self.last_restart = self.last_restart.max(finished.and_then(|time| time.parse().ok()));
    }
}

/// Why a container ended: its reason, else its signal, else its exit code.
fn ending(terminated: &Value) -> String {
    let reason = text(terminated, "/reason", "");
    match (reason.is_empty(), integer(terminated, "/signal").cmp(&0)) {
        (false, _) => reason,
        (true, Ordering::Equal) => format!("ExitCode:{}", integer(terminated, "/exitCode")),
        (true, _) => format!("Signal:{}", integer(terminated, "/signal")),
    }
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn condition<'a>(pod: &'a Value, type_: &str) -> Option<&'a Value> {
    items(pod, "/status/conditions").find(|condition| condition["type"] == type_)
}

fn is_true(condition: Option<&Value>) -> bool {
    condition.is_some_and(|condition| condition["status"] == "True")
}

fn readiness_gates(pod: &Value) -> String {
    let gates = items(pod, "/spec/readinessGates");
    if gates.len() == 0 {
        return NONE.to_owned();
    }
    let count = gates.len();
    let met =
        gates.filter(|gate| is_true(gate["conditionType"].as_str().and_then(|name| condition(pod, name)))).count();
    format!("{met}/{count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_of(pod: &Value) -> (String, String, String) {
        let cells = cells(pod, Timestamp::UNIX_EPOCH);
        let cell = |index: usize| cells[index].as_str().unwrap_or_default().to_owned();
        (cell(1), cell(2), cell(3))
    }

    #[test]
    fn a_pod_shows_what_its_containers_do() {
        let spec = json!({"containers": [{"name": "c"}], "initContainers": [{"name": "a"}, {"name": "b"}]});
        let done = json!({"name": "a", "restartCount": 1, "state": {"terminated": {"exitCode": 0}}});
        let table = [
            (json!({"phase": "Pending"}), ("0/1", "Pending", "0")),
            (
                json!({"phase": "Pending", "initContainerStatuses": [done, {"name": "b", "state": {"running": {}}}]}),
                ("0/1", "Init:1/2", "1"),
            ),
            (
                json!({"phase": "Running", "containerStatuses": [
                    {"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
                ("0/1", "CrashLoopBackOff", "3"),
            ),
            (
                json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 2}}}]}),
                ("0/1", "ExitCode:2", "0"),
            ),
            (
                json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 1, "signal": 9}}}]}),
                ("0/1", "Signal:9", "0"),
            ),
        ];
        for (status, (ready, word, restarts)) in table {
            let pod = json!({"metadata": {"name": "p"}, "spec": spec, "status": status});
            assert_eq!(status_of(&pod), (ready.to_owned(), word.to_owned(), restarts.to_owned()), "{status}");
        }
    }

    #[test]
    fn a_pod_that_is_being_deleted_is_terminating_until_it_ends() {
        let mut pod = json!({"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [{}]}, "status": {"phase": "Running"}});
        assert_eq!(status_of(&pod).1, "Terminating");
        pod["status"]["phase"] = json!("Failed");
        assert_eq!(status_of(&pod).1, "Failed");
    }
}
