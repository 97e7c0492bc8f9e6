//! Probes and lifecycle hooks of containers.

use koord_schema::field::{Errors, Path};
use serde_json::Value;

use super::{containers::port_number_or_name, list, not_negative, text};

const PROBE_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
const HOOK_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];
const NUMBERS: [&str; 5] =
    ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

/// Checks a probe; `name` is its field.
pub(super) fn probe(name: &str, probe: &Value, at: &Path<'_>, grace_period: Option<i64>, errors: &mut Errors) {
    if !probe.is_object() {
        return;
    }
    handler(probe, &PROBE_HANDLERS, at, grace_period, errors);
    for field in NUMBERS {
        not_negative(probe, field, at, errors);
    }
    let own_grace = probe["terminationGracePeriodSeconds"].as_i64();
    let grace_at = at.child("terminationGracePeriodSeconds");
    if let Some(seconds) = own_grace.filter(|seconds| *seconds <= 0) {
        errors.invalid(&grace_at, seconds, "must be greater than 0");
    }
    if name == "readinessProbe" {
        if let Some(seconds) = own_grace {
            errors.invalid(&grace_at, seconds, "must not be set for readinessProbes");
        }
    } else if let Some(threshold) = Some(probe["successThreshold"].as_i64().unwrap_or_default()).filter(|it| *it != 1) {
        errors.invalid(&at.child("successThreshold"), threshold, "must be 1");
    }
}

/// Checks the hooks of a container.
pub(super) fn lifecycle(lifecycle: &Value, at: &Path<'_>, grace_period: Option<i64>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        if lifecycle[hook].is_object() {
            handler(&lifecycle[hook], &HOOK_HANDLERS, &at.child(hook), grace_period, errors);
        }
    }
}

/// Checks that exactly one of `kinds` is there, and that one.
fn handler(handler: &Value, kinds: &[&str], at: &Path<'_>, grace_period: Option<i64>, errors: &mut Errors) {
    let mut given = kinds.iter().filter(|kind| handler[**kind].is_object());
    let Some(kind) = given.next() else { return errors.required(at, "must specify a handler type") };
    let (action, action_at) = (&handler[*kind], at.child(kind));
    match *kind {
        "exec" => {
            if list(action, "command").next().is_none() {
                errors.required(&action_at.child("command"), "");
            }
        }
        "httpGet" => http_get(action, &action_at, errors),
        "sleep" => {
            let seconds = action["seconds"].as_i64().unwrap_or_default();
            if let Some(most) = grace_period.filter(|most| seconds < 0 || seconds > *most) {
                let message = format!("must be non-negative and less than terminationGracePeriodSeconds ({most})");
                errors.invalid(&action_at, seconds, message);
            }
        }
        _ => port_number_or_name(&action["port"], &action_at.child("port"), errors),
    }
    for kind in given {
        errors.forbidden(&at.child(kind), "may not specify more than 1 handler type");
    }
}

fn http_get(get: &Value, at: &Path<'_>, errors: &mut Errors) {
    if text(get, "path").is_empty() {
        errors.required(&at.child("path"), "");
    }
    port_number_or_name(&get["port"], &at.child("port"), errors);
    let scheme = text(get, "scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        errors.not_supported(&at.child("scheme"), scheme, &["HTTP", "HTTPS"]);
    }
    for header in list(get, "httpHeaders") {
        let name = text(header, "name");
        if name.is_empty() || !name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-') {
            errors.invalid(&at.child("httpHeaders"), name, HEADER);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_probe_has_one_handler_and_sensible_numbers() {
        let refused = |name: &str, value: Value| {
            let mut errors = Errors::new();
            probe(name, &value, &Path::root("p"), Some(30), &mut errors);
            errors.to_string()
        };
        let exec = json!({"command": ["true"]});
        assert_eq!(refused("livenessProbe", json!({"exec": exec, "successThreshold": 1})), "[]");
        assert_eq!(
            refused("livenessProbe", json!({"exec": exec, "successThreshold": 2})),
            "p.successThreshold: Invalid value: 2: must be 1"
        );
        assert_eq!(refused("readinessProbe", json!({"exec": exec, "successThreshold": 2})), "[]");
        assert_eq!(
            refused("readinessProbe", json!({"exec": exec, "grpc": {"port": 1}})),
            "p.grpc: Forbidden: may not specify more than 1 handler type"
        );
        assert_eq!(refused("startupProbe", Value::Null), "[]");
    }
}
