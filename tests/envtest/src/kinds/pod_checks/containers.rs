//! The containers of a pod: names, images, ports, and what each role allows.

use koord_schema::field::{Errors, Path};
use serde_json::Value;

use super::{
    Surrounding, check_label, environment, is_set, list, one_of, probes, resources, security, text,
    volumes::{self, Volumes},
};

pub(in crate::kinds) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
const RESIZE_POLICIES: [&str; 2] = ["NotRequired", "RestartContainer"];
const ONLY_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Checks the containers that run as long as the pod does.
pub(super) fn regular(spec: &Value, at: &Path<'_>, around: &Surrounding<'_>, errors: &mut Errors) {
    if list(spec, "containers").next().is_none() {
        return errors.required(at, "");
    }
    let mut names = Vec::new();
    for (index, container) in list(spec, "containers").enumerate() {
        let at = at.index(index);
        common(container, &at, around, errors);
        let name = text(container, "name");
        if names.contains(&name) {
            errors.duplicate(&at.child("name"), name);
        }
        names.push(name);
        hooks_and_probes(container, &at, around, errors);
        if is_set(&container["restartPolicy"]) {
            errors.forbidden(&at.child("restartPolicy"), "may not be set for non-init containers");
        }
    }
    host_ports(list(spec, "containers"), at, errors);
}

/// Checks the containers that run before the others, and the sidecars among them.
pub(super) fn init(spec: &Value, at: &Path<'_>, around: &Surrounding<'_>, errors: &mut Errors) {
    let mut names: Vec<&str> = list(spec, "containers").map(|container| text(container, "name")).collect();
    for (index, container) in list(spec, "initContainers").enumerate() {
        let at_one = at.index(index);
        common(container, &at_one, around, errors);
        let policy = container["restartPolicy"].as_str();
        if let Some(policy) = policy.filter(|policy| *policy != "Always") {
            errors.not_supported(&at_one.child("restartPolicy"), policy, &["Always"]);
        }
        let name = text(container, "name");
        if names.contains(&name) {
            errors.duplicate(&at_one.child("name"), name);
        } else if !name.is_empty() {
            names.push(name);
        }
        host_ports([container].into_iter(), at, errors);
        if policy == Some("Always") {
            hooks_and_probes(container, &at_one, around, errors);
        } else {
            for field in ["lifecycle"].into_iter().chain(PROBES) {
                if is_set(&container[field]) {
                    errors.forbidden(&at_one.child(field), ONLY_SIDECARS);
                }
            }
        }
    }
}

/// Checks the containers that were added to a running pod.
pub(super) fn ephemeral(spec: &Value, at: &Path<'_>, around: &Surrounding<'_>, errors: &mut Errors) {
    const NOT_HERE: &str = "cannot be set for an Ephemeral Container";
    let others: Vec<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|field| list(spec, field))
        .map(|it| text(it, "name"))
        .collect();
    let mut names = others.clone();
    for (index, container) in list(spec, "ephemeralContainers").enumerate() {
        let at = at.index(index);
        common(container, &at, around, errors);
        padded_image(container, &at, errors);
        let name = text(container, "name");
        if names.contains(&name) {
            errors.duplicate(&at.child("name"), name);
        } else {
            names.push(name);
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(&target) {
            super::not_found(&at.child("targetContainerName"), target, "", errors);
        }
        for field in
            ["ports", "resources", "resizePolicy", "restartPolicy"].into_iter().chain(PROBES).chain(["lifecycle"])
        {
            if is_set(&container[field]) {
                errors.forbidden(&at.child(field), NOT_HERE);
            }
        }
        let mounts_at = at.child("volumeMounts");
        for (index, mount) in list(container, "volumeMounts").enumerate() {
            for field in ["subPath", "subPathExpr"].into_iter().filter(|field| !text(mount, field).is_empty()) {
                errors.forbidden(&mounts_at.index(index).child(field), NOT_HERE);
            }
        }
    }
}

/// Checks what only pods, not templates of pods, are asked for: an image without blanks around it.
pub(super) fn padded_image(container: &Value, at: &Path<'_>, errors: &mut Errors) {
    let image = text(container, "image");
    if image.trim() != image {
        errors.invalid(&at.child("image"), image, "must not have leading or trailing whitespace");
    }
}

fn hooks_and_probes(container: &Value, at: &Path<'_>, around: &Surrounding<'_>, errors: &mut Errors) {
    if container["lifecycle"].is_object() {
        probes::lifecycle(&container["lifecycle"], &at.child("lifecycle"), around.grace_period, errors);
    }
    for field in PROBES {
        probes::probe(field, &container[field], &at.child(field), around.grace_period, errors);
    }
}

fn common(container: &Value, at: &Path<'_>, around: &Surrounding<'_>, errors: &mut Errors) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.required(&at.child("name"), "");
    } else {
        check_label(name, &at.child("name"), errors);
    }
    if text(container, "image").is_empty() {
        errors.required(&at.child("image"), "");
    }
    one_of(container, "terminationMessagePolicy", at, &MESSAGE_POLICIES, errors);
    ports(container, &at.child("ports"), errors);
    environment::variables(container, &at.child("env"), errors);
    environment::sources(container, &at.child("envFrom"), errors);
    volumes::mounts(container, &at.child("volumeMounts"), around.volumes, errors);
    volumes::devices(container, &at.child("volumeDevices"), around.volumes, errors);
    one_of(container, "imagePullPolicy", at, &PULL_POLICIES, errors);
    let resources_at = at.child("resources");
    resources::of_container(&container["resources"], &resources_at, errors);
    resources::claims(&container["resources"], &resources_at.child("claims"), &around.claims, errors);
    resize_policies(container, &at.child("resizePolicy"), around.restart_policy, errors);
    security::of_container(&container["securityContext"], &at.child("securityContext"), around.has_host_users, errors);
}

fn ports(container: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut names = Vec::new();
    for (index, port) in list(container, "ports").enumerate() {
        let at = at.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let wrong = port_name(name);
            if wrong.is_empty() && names.contains(&name) {
                errors.duplicate(&at.child("name"), name);
            }
            names.push(name);
            for message in wrong {
                errors.invalid(&at.child("name"), name, message);
            }
        }
        match port["containerPort"].as_i64().unwrap_or_default() {
            0 => errors.required(&at.child("containerPort"), ""),
            number => port_number(number, &at.child("containerPort"), errors),
        }
        if let Some(number) = port["hostPort"].as_i64().filter(|number| *number != 0) {
            port_number(number, &at.child("hostPort"), errors);
        }
        one_of(port, "protocol", &at, &PROTOCOLS, errors);
    }
}

/// Checks the number of a port.
pub(in crate::kinds) fn port_number(number: i64, at: &Path<'_>, errors: &mut Errors) {
    if !(1..=65535).contains(&number) {
        errors.invalid(at, number, "must be between 1 and 65535, inclusive");
    }
}

/// Checks a port given by its number or name.
pub(in crate::kinds) fn port_number_or_name(port: &Value, at: &Path<'_>, errors: &mut Errors) {
    match port.as_str() {
        Some(name) => {
            for message in port_name(name) {
                errors.invalid(at, name, message);
            }
        }
        None => port_number(port.as_i64().unwrap_or_default(), at, errors),
    }
}

/// What is wrong with the name of a port.
fn port_name(name: &str) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    if name.len() > 15 {
        wrong.push("must be no more than 15 characters");
    }
    let is_known = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    if name.is_empty() || !name.bytes().all(is_known) {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|c| c.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen");
    }
    wrong
}

/// No two containers take the same port of their node.
fn host_ports<'a>(containers: impl Iterator<Item = &'a Value>, at: &Path<'_>, errors: &mut Errors) {
    let mut taken = Vec::new();
    for (index, container) in containers.enumerate() {
        let at = at.index(index);
        let ports_at = at.child("ports");
        for (index, port) in list(container, "ports").enumerate() {
            let number = port["hostPort"].as_i64().unwrap_or_default();
            if number == 0 {
                continue;
            }
            let place = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if taken.contains(&place) {
                errors.duplicate(&ports_at.index(index).child("hostPort"), &place);
            }
            taken.push(place);
        }
    }
}

fn resize_policies(container: &Value, at: &Path<'_>, restart_policy: &str, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (index, policy) in list(container, "resizePolicy").enumerate() {
        let (resource, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if seen.contains(&resource) {
            errors.duplicate(&at.index(index), resource);
        }
        seen.push(resource);
        super::one_of_value(resource, at, &["cpu", "memory"], errors);
        super::one_of_value(restart, at, &RESIZE_POLICIES, errors);
        if restart_policy == "Never" && restart != "NotRequired" {
            errors.invalid(at, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'");
        }
    }
}

/// What the volumes of a pod are to its containers.
pub(super) fn around<'a>(spec: &'a Value, volumes: &'a Volumes<'a>) -> Surrounding<'a> {
    Surrounding {
        volumes,
        claims: list(spec, "resourceClaims").map(|claim| text(claim, "name")).filter(|name| !name.is_empty()).collect(),
        grace_period: spec["terminationGracePeriodSeconds"].as_i64(),
        restart_policy: text(spec, "restartPolicy"),
        has_host_users: spec["hostUsers"] != false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_about_the_name_of_a_port() {
        assert_eq!(port_name("http"), [""; 0]);
        assert_eq!(port_name("1"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port_name("-a--b").len(), 2);
        assert_eq!(port_name("A_B").len(), 2);
        assert_eq!(port_name("abcdefghijklmnop"), ["must be no more than 15 characters"]);
    }
}
