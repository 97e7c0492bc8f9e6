//! Security contexts of pods and containers, and the annotations that once stood for them.

use koord_schema::field::{Errors, Path};
use serde_json::Value;

use super::{is_set, list, text, volumes::path_inside};

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const ID: &str = "must be between 0 and 2147483647, inclusive";
const SYSCTL: &str = r"must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const NOT_FOR_WINDOWS: &str = "cannot be set for a windows pod";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub(super) const APP_ARMOR_CONTAINER: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Checks the security context of a pod; `spec` has what once stood in it.
pub(super) fn of_pod(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let context = &spec["securityContext"];
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(&context[field], &at.child(field), errors);
    }
    let groups_at = at.child("supplementalGroups");
    for (index, group) in list(context, "supplementalGroups").enumerate() {
        id(group, &groups_at.index(index), errors);
    }
    if spec["shareProcessNamespace"] == true && spec["hostPID"] == true {
        let message = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&at.child("shareProcessNamespace"), true, message);
    }
    sysctls(context, spec, &at.child("sysctls"), errors);
    optional(context, "fsGroupChangePolicy", at, &["Always", "OnRootMismatch"], errors);
    seccomp(&context["seccompProfile"], &at.child("seccompProfile"), errors);
    app_armor(&context["appArmorProfile"], &at.child("appArmorProfile"), errors);
    optional(context, "supplementalGroupsPolicy", at, &["Merge", "Strict"], errors);
    // The other policy belongs to a feature that is off.
    optional(context, "seLinuxChangePolicy", at, &["Recursive"], errors);
}

/// Checks the security context of a container.
pub(super) fn of_container(context: &Value, at: &Path<'_>, has_host_users: bool, errors: &mut Errors) {
    if !context.is_object() {
        return;
    }
    for field in ["runAsUser", "runAsGroup"] {
        id(&context[field], &at.child(field), errors);
    }
    optional(context, "procMount", at, &["Default", "Unmasked"], errors);
    if has_host_users && context["procMount"] == "Unmasked" {
        errors.invalid(&at.child("procMount"), "Unmasked", "`hostUsers` must be false to use `Unmasked`");
    }
    seccomp(&context["seccompProfile"], &at.child("seccompProfile"), errors);
    if context["allowPrivilegeEscalation"] == false {
        let mut refuse = |message: &str| super::invalid_as(at, shown(context), message, errors);
        if context["privileged"] == true {
            refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        for _ in list(&context["capabilities"], "add").filter(|capability| **capability == "CAP_SYS_ADMIN") {
            refuse("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    app_armor(&context["appArmorProfile"], &at.child("appArmorProfile"), errors);
}

/// A container's security context as the real server shows the struct.
fn shown(context: &Value) -> String {
    const FIELDS: [(&str, &str); 12] = [
        ("Capabilities", "capabilities"),
        ("Privileged", "privileged"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("WindowsOptions", "windowsOptions"),
        ("RunAsUser", "runAsUser"),
        ("RunAsGroup", "runAsGroup"),
        ("RunAsNonRoot", "runAsNonRoot"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("ProcMount", "procMount"),
        ("SeccompProfile", "seccompProfile"),
        ("AppArmorProfile", "appArmorProfile"),
    ];
    const INNER: [(&str, &[(&str, &str)]); 4] = [
        ("capabilities", &[("Add", "add"), ("Drop", "drop")]),
        ("seLinuxOptions", &[("User", "user"), ("Role", "role"), ("Type", "type"), ("Level", "level")]),
        ("seccompProfile", &[("Type", "type"), ("LocalhostProfile", "localhostProfile")]),
        ("appArmorProfile", &[("Type", "type"), ("LocalhostProfile", "localhostProfile")]),
    ];
    let render = |name: &str, value: &Value| match INNER.iter().find(|(inner, _)| *inner == name) {
        Some((_, fields)) if value.is_object() => struct_text(value, fields),
        _ => value.to_string(),
    };
    let parts: Vec<String> =
        FIELDS.iter().map(|(go, name)| format!("\"{go}\":{}", render(name, &context[*name]))).collect();
    format!("{{{}}}", parts.join(","))
}

fn struct_text(value: &Value, fields: &[(&str, &str)]) -> String {
    let parts: Vec<String> = fields.iter().map(|(go, name)| format!("\"{go}\":{}", value[*name])).collect();
    format!("{{{}}}", parts.join(","))
}

fn id(value: &Value, at: &Path<'_>, errors: &mut Errors) {
    if let Some(number) = value.as_i64().filter(|number| i32::try_from(*number).map_or(true, |id| id < 0)) {
        errors.invalid(at, number, ID);
    }
}

fn optional(fields: &Value, name: &str, at: &Path<'_>, allowed: &[&str], errors: &mut Errors) {
    if let Some(value) = fields[name].as_str().filter(|value| !allowed.contains(value)) {
        errors.not_supported(&at.child(name), value, allowed);
    }
}

fn sysctls(context: &Value, spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (index, sysctl) in list(context, "sysctls").enumerate() {
        let at = at.index(index);
        let name = text(sysctl, "name");
        let at = at.child("name");
        if name.is_empty() {
            errors.required(&at, "");
        } else if !is_sysctl(name) {
            errors.invalid(&at, name, SYSCTL);
        } else if seen.contains(&name) {
            errors.duplicate(&at, name);
        }
        seen.push(name);
        let normal = name.replace('/', ".");
        let is_ipc = normal.starts_with("fs.mqueue.")
            || normal.starts_with("kernel.shm")
            || normal.starts_with("kernel.msg")
            || normal == "kernel.sem";
        if spec["hostNetwork"] == true && normal.starts_with("net.") {
            errors.invalid(&at, name, "may not be specified when 'hostNetwork' is true");
        } else if spec["hostIPC"] == true && is_ipc {
            errors.invalid(&at, name, "may not be specified when 'hostIPC' is true");
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let edge = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|c| edge(*c))
            && bytes.last().is_some_and(|c| edge(*c))
            && bytes.iter().all(|c| edge(*c) || matches!(c, b'-' | b'_'))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_part)
}

fn seccomp(profile: &Value, at: &Path<'_>, errors: &mut Errors) {
    if !profile.is_object() {
        return;
    }
    let kind = text(profile, "type");
    match kind {
        "" => errors.required(&at.child("type"), "type is required when seccompProfile is set"),
        _ if PROFILES.contains(&kind) => {}
        _ => errors.not_supported(&at.child("type"), kind, &PROFILES),
    }
    let file_at = at.child("localhostProfile");
    match profile["localhostProfile"].as_str() {
        None if kind == "Localhost" => errors.required(&file_at, "must be set when seccomp type is Localhost"),
        Some(path) if kind == "Localhost" => path_inside(path, &file_at, errors),
        Some(_) => {
            let shown = struct_text(profile, &[("Type", "type"), ("LocalhostProfile", "localhostProfile")]);
            super::invalid_as(&file_at, shown, "can only be set when seccomp type is Localhost", errors);
        }
        None => {}
    }
}

fn app_armor(profile: &Value, at: &Path<'_>, errors: &mut Errors) {
    const MUST: &str = "must be set when AppArmor type is Localhost";
    const PATH_BYTES_MAX: usize = 4095;
    if !profile.is_object() {
        return;
    }
    let file = profile["localhostProfile"].as_str();
    let file_at = at.child("localhostProfile");
    match (text(profile, "type"), file) {
        ("Localhost", None | Some("")) => errors.required(&file_at, MUST),
        ("Localhost", Some(file)) => {
            if file.trim() != file {
                errors.invalid(&file_at, file, "must not be padded with whitespace");
            }
            if file.len() > PATH_BYTES_MAX {
                errors.too_long(&file_at, PATH_BYTES_MAX);
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(file)) => {
            errors.invalid(&file_at, file, "can only be set when AppArmor type is Localhost");
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => errors.required(&at.child("type"), "type is required when appArmorProfile is set"),
        (other, _) => errors.not_supported(&at.child("type"), other, &PROFILES),
    }
}

/// The containers of a pod, in the order in which the real server visits them.
fn containers(spec: &Value) -> impl Iterator<Item = (&'static str, usize, &Value)> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|field| list(spec, field).enumerate().map(move |(index, container)| (field, index, container)))
}

/// Checks what a pod of this operating system may not have.
pub(super) fn operating_system(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    if !spec["os"].is_object() {
        return;
    }
    let os_at = at.child("os");
    match text(&spec["os"], "name") {
        "" => errors.required(&os_at.child("name"), ""),
        "linux" => {
            if is_set(&spec["securityContext"]["windowsOptions"]) {
                let message = "windows options cannot be set for a linux pod";
                errors.forbidden(&at.child("securityContext").child("windowsOptions"), message);
            }
            for (field, index, container) in containers(spec) {
                if is_set(&container["securityContext"]["windowsOptions"]) {
                    let message = "windows options cannot be set for a linux pod";
                    let list_at = at.child(field);
                    let one_at = list_at.index(index);
                    errors.forbidden(&one_at.child("securityContext").child("windowsOptions"), message);
                }
            }
        }
        "windows" => not_for_windows(spec, at, errors),
        other => errors.not_supported(&os_at, other, &["linux", "windows"]),
    }
}

fn not_for_windows(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    const OF_POD: [&str; 15] = [
        "securityContext.appArmorProfile",
        "securityContext.seLinuxOptions",
        "hostUsers",
        "hostPID",
        "hostIPC",
        "securityContext.seccompProfile",
        "securityContext.fsGroup",
        "securityContext.fsGroupChangePolicy",
        "securityContext.sysctls",
        "shareProcessNamespace",
        "securityContext.runAsUser",
        "securityContext.runAsGroup",
        "securityContext.supplementalGroups",
        "securityContext.supplementalGroupsPolicy",
        "securityContext.seLinuxChangePolicy",
    ];
    const OF_CONTAINER: [&str; 10] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    for path in OF_POD {
        let value = path.split('.').fold(spec, |value, field| &value[field]);
        if is_set(value) && !(matches!(path, "hostPID" | "hostIPC") && *value == false) {
            errors.forbidden(&at.child(path), NOT_FOR_WINDOWS);
        }
    }
    for (field, index, container) in containers(spec) {
        let list_at = at.child(field);
        let one_at = list_at.index(index);
        let context_at = one_at.child("securityContext");
        for field in OF_CONTAINER.into_iter().filter(|field| is_set(&container["securityContext"][*field])) {
            errors.forbidden(&context_at.child(field), NOT_FOR_WINDOWS);
        }
    }
}

/// Checks what does not go with user namespaces.
pub(super) fn host_users(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    const WHEN: &str = "when `hostUsers` is false";
    if spec["hostUsers"] != false {
        return;
    }
    // QUIRK: two of the real server's paths begin with a capital.
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec[field] == true {
            errors.forbidden(&at.child(shown), WHEN);
        }
    }
    for (field, index, container) in containers(spec) {
        if list(container, "volumeDevices").next().is_some() {
            let list_at = at.child(field);
            errors.forbidden(&list_at.index(index).child("volumeDevices"), WHEN);
        }
    }
}

/// Checks the annotations of a pod that once were what fields are today.
pub(super) fn annotations(annotations: &Value, spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let all = || annotations.as_object().into_iter().flatten();
    if let Some(profile) = annotations[SECCOMP_POD].as_str() {
        seccomp_annotation(profile, &at.child(SECCOMP_POD), errors);
    }
    for (key, profile) in all().filter(|(key, _)| key.starts_with(SECCOMP_CONTAINER)) {
        seccomp_annotation(profile.as_str().unwrap_or_default(), &at.child(key), errors);
    }
    for (key, profile) in all() {
        let Some(name) = key.strip_prefix(APP_ARMOR_CONTAINER) else { continue };
        let profile = profile.as_str().unwrap_or_default();
        if !containers(spec).any(|(_, _, container)| text(container, "name") == name) {
            errors.invalid(&at.key(key), name, "container not found");
        }
        if !matches!(profile, "" | "runtime/default" | "unconfined") && !profile.starts_with("localhost/") {
            errors.invalid(&at.key(key), profile, format!("invalid AppArmor profile name: {profile:?}"));
        }
    }
}

fn seccomp_annotation(profile: &str, at: &Path<'_>, errors: &mut Errors) {
    match profile.strip_prefix("localhost/") {
        Some(path) => path_inside(path, at, errors),
        None if matches!(profile, "runtime/default" | "docker/default" | "unconfined") => {}
        None => errors.invalid(at, profile, "must be a valid seccomp profile"),
    }
}

/// Checks that the annotations of a new pod agree with its fields.
pub(super) fn annotations_agree(annotations: &Value, spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let context_at = at.child("securityContext");
    let pod = &spec["securityContext"];
    if let Some(annotation) = annotations[SECCOMP_POD].as_str() {
        let at = context_at.child("seccompProfile");
        agrees("seccomp", annotation, &["runtime/default", "docker/default"], &pod["seccompProfile"], &at, errors);
    }
    let found = |prefix: &str, container: &Value| {
        annotations[format!("{prefix}{}", text(container, "name"))].as_str().map(ToOwned::to_owned)
    };
    for (field, index, container) in containers(spec) {
        let list_at = at.child(field);
        let one_at = list_at.index(index);
        let at = one_at.child("securityContext");
        let own = &container["securityContext"];
        if let Some(annotation) = found(SECCOMP_CONTAINER, container) {
            let defaults = ["runtime/default", "docker/default"];
            agrees("seccomp", &annotation, &defaults, &own["seccompProfile"], &at.child("seccompProfile"), errors);
        }
    }
    if spec["os"]["name"] == "windows" {
        return;
    }
    for (field, index, container) in containers(spec) {
        let list_at = at.child(field);
        let one_at = list_at.index(index);
        let at = one_at.child("securityContext");
        let own = &container["securityContext"]["appArmorProfile"];
        let profile = if own.is_object() { own } else { &pod["appArmorProfile"] };
        if let Some(annotation) = found(APP_ARMOR_CONTAINER, container) {
            agrees("apparmor", &annotation, &["runtime/default"], profile, &at.child("appArmorProfile"), errors);
        }
    }
}

fn agrees(word: &str, annotation: &str, defaults: &[&str], profile: &Value, at: &Path<'_>, errors: &mut Errors) {
    let same_type = match text(profile, "type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => defaults.contains(&annotation),
        "Localhost" => annotation.starts_with("localhost/"),
        _ => true,
    };
    if !same_type {
        errors.forbidden(&at.child("type"), format!("{word} type in annotation and field must match"));
    } else if text(profile, "type") == "Localhost"
        && annotation.strip_prefix("localhost/") != profile["localhostProfile"].as_str()
    {
        let message = format!("{word} profile in annotation and field must match");
        errors.forbidden(&at.child("localhostProfile"), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_that_may_not_escalate_is_not_privileged() {
        let mut errors = Errors::new();
        let context = json!({"allowPrivilegeEscalation": false, "privileged": true});
        of_container(&context, &Path::root("c"), true, &mut errors);
        assert_eq!(
            errors.to_string(),
            r#"c: Invalid value: {"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true"#
        );
    }

    #[test]
    fn what_options_of_windows_say_is_not_checked() {
        let mut errors = Errors::new();
        let options = json!({"windowsOptions": {"runAsUserName": "a\\b\\c", "gmsaCredentialSpecName": "-"}});
        of_container(&options, &Path::root("c"), true, &mut errors);
        of_pod(&json!({"securityContext": options}), &Path::root("p"), &mut errors);
        assert_eq!(errors.to_string(), "[]");
    }

    #[test]
    fn names_of_sysctls() {
        assert!(is_sysctl("net.ipv4/ip_forward") && !is_sysctl("net..x") && !is_sysctl("Net.x"));
    }

    #[test]
    fn an_old_annotation_agrees_with_the_field() {
        let spec = json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}});
        let mut errors = Errors::new();
        annotations_agree(&json!({SECCOMP_POD: "runtime/default"}), &spec, &Path::root("spec"), &mut errors);
        assert_eq!(
            errors.to_string(),
            "spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"
        );
    }
}
