//! The volumes of a pod, and where its containers mount them.

use koord_resource::Quantity;
use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::Value;

use super::{
    super::claim_spec,
    check_label,
    environment::{self, Reader},
    is_set, list, not_found, text,
};

/// The volumes that nothing is wrong with, by name.
pub(super) type Volumes<'a> = Vec<(&'a str, &'a Value)>;

/// The kinds of sources in the order in which they are looked at.
const SOURCES: [&str; 29] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
];
const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];
const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const CONFLICT: &str = "conflicting duplicate paths";

/// Checks the volumes of a pod called `pod_name`, or of a template; gives those that nothing is wrong with.
pub(super) fn check<'a>(spec: &'a Value, pod_name: &str, at: &Path<'_>, errors: &mut Errors) -> Volumes<'a> {
    let mut right: Volumes<'a> = Vec::new();
    for (index, volume) in list(spec, "volumes").enumerate() {
        let at = at.index(index);
        let name = text(volume, "name");
        let mut wrong = Errors::new();
        source(volume, pod_name, &at, &mut wrong);
        if name.is_empty() {
            wrong.required(&at.child("name"), "");
        } else {
            check_label(name, &at.child("name"), &mut wrong);
        }
        if right.iter().any(|(known, _)| *known == name) {
            wrong.duplicate(&at.child("name"), name);
        }
        if wrong.is_empty() {
            right.push((name, volume));
        } else {
            errors.extend(wrong);
        }
        let claim = text(&volume["persistentVolumeClaim"], "claimName");
        let is_made =
            |other: &Value| other["ephemeral"].is_object() && claim == format!("{pod_name}-{}", text(other, "name"));
        if volume["persistentVolumeClaim"].is_object() && !pod_name.is_empty() && list(spec, "volumes").any(is_made) {
            let message = "must not reference a PVC that gets created for an ephemeral volume";
            errors.invalid(&at.child("persistentVolumeClaim").child("claimName"), claim, message);
        }
    }
    right
}

fn source(volume: &Value, pod_name: &str, at: &Path<'_>, errors: &mut Errors) {
    let mut given = SOURCES.into_iter().filter(|kind| volume[*kind].is_object());
    let Some(kind) = given.next() else { return errors.required(at, "must specify a volume type") };
    let (source, source_at) = (&volume[kind], at.child(kind));
    let require = |field: &str, errors: &mut Errors| {
        if text(source, field).is_empty() {
            errors.required(&source_at.child(field), "");
        }
    };
    match kind {
        "emptyDir" => {
            let limit = source["sizeLimit"].as_str().and_then(|text| text.parse::<Quantity>().ok());
            if limit.is_some_and(|limit| limit.is_negative()) {
                let message = "SizeLimit field must be a valid resource quantity";
                errors.forbidden(&source_at.child("sizeLimit"), message);
            }
        }
        "hostPath" => {
            let path = text(source, "path");
            if path.is_empty() {
                errors.required(&source_at.child("path"), "");
            } else {
                no_backsteps(path, &source_at.child("path"), errors);
                let kind = text(source, "type");
                if !HOST_PATH_TYPES.contains(&kind) {
                    errors.not_supported(&source_at.child("type"), kind, &HOST_PATH_TYPES);
                }
            }
        }
        "gitRepo" => {
            require("repository", errors);
            path_inside(text(source, "directory"), &source_at.child("directory"), errors);
        }
        "secret" | "configMap" => {
            require(if kind == "secret" { "secretName" } else { "name" }, errors);
            mode(source, "defaultMode", &source_at, errors);
            let items_at = source_at.child("items");
            for (index, item) in list(source, "items").enumerate() {
                key_to_path(item, &items_at.index(index), errors);
            }
        }
        "nfs" => {
            require("server", errors);
            require("path", errors);
            let path = text(source, "path");
            if !path.starts_with('/') {
                errors.invalid(&source_at.child("path"), path, "must be an absolute path");
            }
        }
        "persistentVolumeClaim" => require("claimName", errors),
        "downwardAPI" => {
            mode(source, "defaultMode", &source_at, errors);
            for file in list(source, "items") {
                downward_file(file, &source_at, errors);
            }
        }
        "csi" => {
            csi_driver(text(source, "driver"), &source_at.child("driver"), errors);
            if source["nodePublishSecretRef"].is_object() && text(&source["nodePublishSecretRef"], "name").is_empty() {
                errors.required(&source_at.child("nodePublishSecretRef").child("name"), "");
            }
        }
        "projected" => projected(source, &source_at, errors),
        "ephemeral" => {
            if source["volumeClaimTemplate"].is_object() {
                claim_spec::check(
                    &source["volumeClaimTemplate"]["spec"],
                    &source_at.child("volumeClaimTemplate").child("spec"),
                    errors,
                );
            } else {
                errors.required(&source_at.child("volumeClaimTemplate"), "");
            }
            let name = text(volume, "name");
            if !pod_name.is_empty() && !name.is_empty() {
                let claim = format!("{pod_name}-{name}");
                for message in names::dns1123_subdomain(&claim) {
                    errors.invalid(&at.child("name"), name, format!("PVC name {claim:?}: {message}"));
                }
            }
        }
        _ => {}
    }
    for kind in given {
        // The real server misspells two of them.
        let shown = match kind {
            "cephfs" => "cephFS",
            "downwardAPI" => "downwarAPI",
            _ => kind,
        };
        errors.forbidden(&at.child(shown), "may not specify more than 1 volume type");
    }
}

fn csi_driver(driver: &str, at: &Path<'_>, errors: &mut Errors) {
    if driver.is_empty() {
        errors.required(at, "");
    }
    if driver.len() > names::LABEL_CHARS_MAX {
        errors.too_long(at, names::LABEL_CHARS_MAX);
    }
    for message in names::dns1123_subdomain(&driver.to_lowercase()) {
        errors.invalid(at, driver, message);
    }
}

fn mode(fields: &Value, name: &str, at: &Path<'_>, errors: &mut Errors) {
    if let Some(mode) = fields[name].as_i64().filter(|mode| !(0..=0o777).contains(mode)) {
        errors.invalid(&at.child(name), mode, MODE);
    }
}

fn key_to_path(item: &Value, at: &Path<'_>, errors: &mut Errors) {
    for field in ["key", "path"] {
        if text(item, field).is_empty() {
            errors.required(&at.child(field), "");
        }
    }
    path_inside_unreserved(text(item, "path"), &at.child("path"), errors);
    mode(item, "mode", at, errors);
}

fn downward_file(file: &Value, at: &Path<'_>, errors: &mut Errors) {
    let path = text(file, "path");
    if path.is_empty() {
        errors.required(&at.child("path"), "");
    }
    path_inside_unreserved(path, &at.child("path"), errors);
    if file["fieldRef"].is_object() {
        environment::field_reference(&file["fieldRef"], &at.child("fieldRef"), Reader::File, errors);
        if file["resourceFieldRef"].is_object() {
            let message = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.invalid(at, "resource", message);
        }
    } else if file["resourceFieldRef"].is_object() {
        environment::amount_reference(&file["resourceFieldRef"], &at.child("resourceFieldRef"), Reader::File, errors);
    } else {
        errors.required(at, "one of fieldRef and resourceFieldRef is required");
    }
    mode(file, "mode", at, errors);
}

fn projected(source: &Value, at: &Path<'_>, errors: &mut Errors) {
    mode(source, "defaultMode", at, errors);
    let mut paths: Vec<&str> = Vec::new();
    let sources_at = at.child("sources");
    for (index, part) in list(source, "sources").enumerate() {
        let part_at = sources_at.index(index);
        let mut kinds = 0;
        for kind in ["secret", "configMap"].into_iter().filter(|kind| part[*kind].is_object()) {
            kinds += 1;
            let (of, of_at) = (&part[kind], part_at.child(kind));
            if text(of, "name").is_empty() {
                errors.required(&of_at.child("name"), "");
            }
            let items_at = of_at.child("items");
            for (index, item) in list(of, "items").enumerate() {
                key_to_path(item, &items_at.index(index), errors);
                claim_path(text(item, "path"), text(of, "name"), &mut paths, at, errors);
            }
        }
        if part["downwardAPI"].is_object() {
            kinds += 1;
            for file in list(&part["downwardAPI"], "items") {
                downward_file(file, &part_at.child("downwardAPI"), errors);
                claim_path(text(file, "path"), text(file, "path"), &mut paths, at, errors);
            }
        }
        if part["serviceAccountToken"].is_object() {
            kinds += 1;
            token(&part["serviceAccountToken"], &part_at.child("serviceAccountToken"), at, errors);
        }
        for kind in ["clusterTrustBundle", "podCertificate"] {
            kinds += usize::from(part[kind].is_object());
        }
        if kinds > 1 {
            errors.forbidden(&part_at, "may not specify more than 1 volume type per source");
        }
    }
}

/// Two sources may not write the same file.
fn claim_path<'a>(path: &'a str, shown: &str, paths: &mut Vec<&'a str>, at: &Path<'_>, errors: &mut Errors) {
    if paths.contains(&path) {
        errors.invalid(at, shown, CONFLICT);
    } else if !path.is_empty() {
        paths.push(path);
    }
}

fn token(token: &Value, at: &Path<'_>, volume_at: &Path<'_>, errors: &mut Errors) {
    const SECONDS_MIN: i64 = 600;
    const SECONDS_MAX: i64 = 1 << 32;
    let seconds = token["expirationSeconds"].as_i64().unwrap_or_default();
    let seconds_at = at.child("expirationSeconds");
    if seconds < SECONDS_MIN {
        errors.invalid(&seconds_at, seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds > SECONDS_MAX {
        errors.invalid(&seconds_at, seconds, "may not specify a duration larger than 2^32 seconds");
    }
    match text(token, "path") {
        "" => errors.required(&volume_at.child("path"), ""),
        path => path_inside_unreserved(path, &volume_at.child("path"), errors),
    }
}

/// Checks that no part of the path is `..`.
fn no_backsteps(path: &str, at: &Path<'_>, errors: &mut Errors) {
    if path.split('/').any(|part| part == "..") {
        errors.invalid(at, path, "must not contain '..'");
    }
}

/// Checks that the path stays inside.
pub(super) fn path_inside(path: &str, at: &Path<'_>, errors: &mut Errors) {
    if path.starts_with('/') {
        errors.invalid(at, path, "must be a relative path");
    }
    no_backsteps(path, at, errors);
}

/// Checks that the path stays inside and takes no name that kubelet needs.
fn path_inside_unreserved(path: &str, at: &Path<'_>, errors: &mut Errors) {
    path_inside(path, at, errors);
    if path.starts_with("..") && !path.starts_with("../") {
        errors.invalid(at, path, "must not start with '..'");
    }
}

/// Checks where a container mounts volumes.
pub(super) fn mounts(container: &Value, at: &Path<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let mut places = Vec::new();
    for (index, mount) in list(container, "volumeMounts").enumerate() {
        let at_one = at.index(index);
        let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
        let (name_at, path_at) = (at_one.child("name"), at_one.child("mountPath"));
        if name.is_empty() {
            errors.required(&name_at, "");
        }
        if !volumes.iter().any(|(known, _)| *known == name) {
            not_found(&name_at, name, "", errors);
        }
        if path.is_empty() {
            errors.required(&path_at, "");
        }
        if places.contains(&path) {
            errors.invalid(&path_at, path, "must be unique");
        }
        places.push(path);
        if list(container, "volumeDevices").any(|device| text(device, "name") == name) {
            errors.invalid(&name_at, name, "must not already exist in volumeDevices");
        }
        if list(container, "volumeDevices").any(|device| text(device, "devicePath") == path) {
            errors.invalid(&path_at, path, "must not already exist as a path in volumeDevices");
        }
        // QUIRK: the real server's paths lack the index from here on.
        let (inside, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !inside.is_empty() {
            path_inside(inside, &at.child("subPath"), errors);
        }
        if !expression.is_empty() {
            if !inside.is_empty() {
                let message = "subPathExpr and subPath are mutually exclusive";
                errors.invalid(&at_one.child("subPathExpr"), expression, message);
            }
            path_inside(expression, &at.child("subPathExpr"), errors);
        }
        propagation(mount, container, at, errors);
    }
}

fn propagation(mount: &Value, container: &Value, at: &Path<'_>, errors: &mut Errors) {
    let propagation = mount["mountPropagation"].as_str();
    let propagation_at = at.child("mountPropagation");
    if let Some(given) = propagation {
        if !PROPAGATIONS.contains(&given) {
            errors.not_supported(&propagation_at, given, &PROPAGATIONS);
        }
        if given == "Bidirectional" && container["securityContext"]["privileged"] != true {
            let message = "Bidirectional mount propagation is available only to privileged containers";
            errors.forbidden(&propagation_at, message);
        }
    }
    let recursive_at = at.child("recursiveReadOnly");
    match mount["recursiveReadOnly"].as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if mount["readOnly"] != true {
                errors.forbidden(&recursive_at, "may only be specified when readOnly is true");
            }
            if propagation.is_some_and(|given| given != "None") {
                let message = "may only be specified when mountPropagation is None or not specified";
                errors.forbidden(&recursive_at, message);
            }
        }
        Some(other) => errors.not_supported(&recursive_at, other, &RECURSIVE),
    }
}

/// Checks which volumes a container has as raw devices.
pub(super) fn devices(container: &Value, at: &Path<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let (mut seen_names, mut seen_paths) = (Vec::new(), Vec::new());
    for (index, device) in list(container, "volumeDevices").enumerate() {
        let at = at.index(index);
        let (name, path) = (text(device, "name"), text(device, "devicePath"));
        let (name_at, path_at) = (at.child("name"), at.child("devicePath"));
        if name.is_empty() {
            errors.required(&name_at, "");
        }
        if seen_names.contains(&name) {
            errors.invalid(&name_at, name, "must be unique");
        }
        match volumes.iter().find(|(known, _)| *known == name) {
            Some((_, volume)) if !is_set(&volume["persistentVolumeClaim"]) && !is_set(&volume["ephemeral"]) => {
                let message = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid(&name_at, name, message);
            }
            Some(_) => {}
            None => not_found(&name_at, name, "", errors),
        }
        if path.is_empty() {
            errors.required(&path_at, "");
        }
        if seen_paths.contains(&path) {
            errors.invalid(&path_at, path, "must be unique");
        }
        if path.split('/').any(|part| part == "..") {
            errors.invalid(&path_at, path, "can not contain backsteps ('..')");
        } else {
            seen_paths.push(path);
        }
        if list(container, "volumeMounts").any(|mount| text(mount, "name") == name) {
            errors.invalid(&name_at, name, "must not already exist in volumeMounts");
        }
        if list(container, "volumeMounts").any(|mount| text(mount, "mountPath") == path) {
            errors.invalid(&path_at, path, "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            seen_names.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(spec: &Value) -> String {
        let mut errors = Errors::new();
        check(spec, "p", &Path::root("volumes"), &mut errors);
        errors.to_string()
    }

    #[test]
    fn a_volume_has_one_source() {
        let volumes = |volume: Value| json!({"volumes": [volume]});
        assert_eq!(refused(&volumes(json!({"name": "v", "emptyDir": {}}))), "[]");
        assert_eq!(
            refused(&volumes(json!({"name": "v", "emptyDir": {}, "hostPath": {"path": ""}}))),
            "volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"
        );
        assert_eq!(
            refused(&volumes(
                json!({"name": "v", "secret": {"defaultMode": 512, "secretName": "s", "items": [{"key": "a", "path": "../a"}]}})
            )),
            format!(
                "[volumes[0].secret.defaultMode: Invalid value: 512: {MODE}, volumes[0].secret.items[0].path: Invalid value: \"../a\": must not contain '..']"
            )
        );
    }

    #[test]
    fn what_volumes_of_single_vendors_say_is_not_checked() {
        for kind in ["iscsi", "rbd", "cinder", "fc", "azureDisk", "vsphereVolume", "portworxVolume"] {
            assert_eq!(refused(&json!({"volumes": [{"name": "v", kind: {}}]})), "[]", "{kind}");
        }
    }

    #[test]
    fn projected_sources_write_different_files() {
        let items = json!([{"key": "a", "path": "x"}]);
        let sources = json!([{"secret": {"name": "s", "items": items}}, {"configMap": {"name": "c", "items": items}}]);
        assert_eq!(
            refused(&json!({"volumes": [{"name": "v", "projected": {"sources": sources}}]})),
            "volumes[0].projected: Invalid value: \"c\": conflicting duplicate paths"
        );
    }
}
