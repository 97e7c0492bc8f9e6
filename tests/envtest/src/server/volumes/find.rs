//! Which volume a claim takes.

use koord_resource::quantity::Quantity;
use serde_json::Value;

use super::{class_of, phase};
use crate::{metadata, selector};

/// Whether a volume names the claim: by its uid, or by its name alone.
pub(super) fn is_bound_to(volume: &Value, claim: &Value) -> bool {
    let reference = &volume["spec"]["claimRef"];
    let uid = reference["uid"].as_str().unwrap_or_default();
    reference["name"] == claim["metadata"]["name"]
        && reference["namespace"] == claim["metadata"]["namespace"]
        && (uid.is_empty() || uid == metadata::text(claim, "uid"))
}

/// How many access modes a volume has, its size, its name: less goes first.
type Rank = (usize, Option<Quantity>, String);

/// The volume that is bound to the claim already; else the one with the fewest access modes, and of those the smallest, that the
/// claim can take.
pub(super) fn best(volumes: impl Iterator<Item = Value>, claim: &Value, class: &str) -> Option<Value> {
    let selector = &claim["spec"]["selector"];
    let selector = (!selector.is_null()).then(|| selector::of_object(selector));
    let mut best: Option<(Rank, Value)> = None;
    for volume in volumes.filter(|volume| !metadata::is_deleting(volume) && fits(volume, claim)) {
        if volume["spec"]["claimRef"].is_object() {
            if is_bound_to(&volume, claim) {
                return Some(volume);
            }
            continue;
        }
        let labels = &volume["metadata"]["labels"];
        let is_selected = selector.as_ref().is_none_or(|selector| {
            selector.as_ref().is_some_and(|selector| selector.selects(|key| labels.get(key).and_then(Value::as_str)))
        });
        if phase(&volume) != "Available" || class_of(&volume) != class || !is_selected || !has_modes(&volume, claim) {
            continue;
        }
        let rank = (modes(&volume).count(), size_of(&volume), metadata::text(&volume, "name").to_owned());
        if best.as_ref().is_none_or(|(known, _)| rank < *known) {
            best = Some((rank, volume));
        }
    }
    best.map(|(_, volume)| volume)
}

/// Whether a claim that names this volume may have it.
pub(super) fn satisfies(volume: &Value, claim: &Value) -> bool {
    fits(volume, claim) && has_modes(volume, claim) && class_of(volume) == class_of(claim)
}

/// Whether the volume is large enough and is used as the claim wants it, as files or as a device.
fn fits(volume: &Value, claim: &Value) -> bool {
    let wanted = &claim["spec"]["resources"]["requests"]["storage"];
    let wanted = wanted.as_str().and_then(|text| text.parse::<Quantity>().ok());
    let is_large_enough = match (wanted, size_of(volume)) {
        (None, _) => true,
        (Some(wanted), size) => size.is_some_and(|size| size >= wanted),
    };
    let mode = |object: &Value| object["spec"]["volumeMode"].as_str().unwrap_or("Filesystem").to_owned();
    is_large_enough && mode(volume) == mode(claim)
}

fn size_of(volume: &Value) -> Option<Quantity> {
    volume["spec"]["capacity"]["storage"].as_str()?.parse().ok()
}

fn modes(object: &Value) -> impl Iterator<Item = &Value> {
    object["spec"]["accessModes"].as_array().into_iter().flatten()
}

fn has_modes(volume: &Value, claim: &Value) -> bool {
    modes(claim).all(|wanted| modes(volume).any(|mode| mode == wanted))
}
