//! The kubelet of a case: what it answers, and when.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::agent::Answer;

/// The kubelet's state; steps change it.
#[derive(Debug)]
pub(crate) struct Kubelet {
    state: Map<String, Value>,
    pods: Vec<Value>,
    /// All requests: path, and whether they had credentials.
    pub(crate) requests: Vec<(String, bool)>,
}

impl Kubelet {
    pub(crate) fn new(state: &Map<String, Value>, pods: &[Value]) -> Self {
        Self { state: state.clone(), pods: pods.to_vec(), requests: Vec::new() }
    }

    /// Replaces what is given.
    pub(crate) fn change(&mut self, state: &Map<String, Value>) {
        self.state.extend(state.clone());
    }

    /// Answers a request, after a delay.
    pub(crate) fn answer(&mut self, path: &str, has_credentials: bool) -> (Duration, Answer) {
        self.requests.push((path.to_owned(), has_credentials));
        let path = path.split('?').next().unwrap_or_default();
        let (mut status, mut body) = (404, "not found".to_owned());
        if path == "/pods/" {
            let pods = self.state.get("pods").cloned().unwrap_or_else(|| json!(self.pods));
            (status, body) =
                (200, json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods}).to_string());
        } else if path == "/configz" {
            let configuration = self.state.get("configz").cloned().unwrap_or_else(usual_configuration);
            if !configuration.is_null() {
                (status, body) = (200, json!({"kubeletconfig": configuration}).to_string());
            }
        }
        let mut delay = Duration::ZERO;
        if let Some(mode) = self.state.get_mut("mode").and_then(|modes| modes.get_mut(path)) {
            delay = Duration::from_secs_f64(mode["delay"].as_f64().unwrap_or_default());
            let left = mode["times"].as_i64();
            if let Some(left) = left {
                mode["times"] = json!(left - 1);
            }
            if left.is_none_or(|left| left > 0) {
                status = mode["status"].as_u64().map_or(status, |status| status as u16);
                body = mode["body"].as_str().map_or(body, str::to_owned);
            }
        }
        (delay, Answer { status, body })
    }
}

fn usual_configuration() -> Value {
    json!({"cpuManagerPolicy": "none", "topologyManagerPolicy": "none", "topologyManagerScope": "container", "cgroupDriver": "systemd"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_end_after_their_number_of_times_and_steps_replace_pods() {
        let Value::Object(state) = json!({"mode": {"/pods/": {"status": 500, "body": "no", "times": 2, "delay": 0.5}}})
        else {
            panic!()
        };
        let mut kubelet = Kubelet::new(&state, &[json!({"metadata": {"name": "a"}})]);
        let answers: Vec<u16> = (0..3).map(|_| kubelet.answer("/pods/", false).1.status).collect();
        assert_eq!(answers, [500, 500, 200]);
        assert_eq!(kubelet.answer("/pods/", false).0, Duration::from_millis(500));
        assert!(kubelet.answer("/pods/", false).1.body.contains(r#""name":"a""#));
        let Value::Object(change) = json!({"pods": [], "configz": null}) else { panic!() };
        kubelet.change(&change);
        assert!(kubelet.answer("/pods/", false).1.body.contains(r#""items":[]"#));
        assert_eq!(kubelet.answer("/configz", true).1.status, 404);
        assert_eq!(kubelet.answer("/stats", true).1.status, 404);
    }
}
