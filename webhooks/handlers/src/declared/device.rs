//! Devices: numbers that name one device each, amounts, and conditions.

use std::collections::BTreeSet;

use koord_api::device::Device;
use koord_resource::{
    admission::{Handler, WebhookEntry},
    field::{Errors, Path},
};

use super::{check_not_negative, entry, handler, nothing_is_fixed, validate};
use crate::Ctx;

const ENTRY: WebhookEntry = entry("vdevice.koordinator.sh", &["scheduling.koordinator.sh"], &["devices"]);

/// The handler.
pub const VALIDATE: Handler<Ctx> =
    handler("/validate-scheduling-koordinator-sh-v1alpha1-device", "device", &[ENTRY], |request, _| {
        validate::<Device>(request, "devices", check, nothing_is_fixed)
    });

fn check(device: &Device, errors: &mut Errors) {
    let spec = Path::root("spec");
    let devices = spec.child("devices");
    let mut seen = BTreeSet::new();
    for (index, info) in device.spec.devices.iter().enumerate() {
        let at = devices.index(index);
        let kind = info.type_.as_ref().map_or("", |kind| kind.as_str());
        if let Some(minor) = info.minor
            && !seen.insert((kind, minor))
        {
            errors.duplicate(&at.child("minor"), minor);
        }
        check_not_negative(&at.child("resources"), &info.resources, errors);
        let conditions = at.child("conditions");
        for (index, condition) in info.conditions.iter().enumerate() {
            let at = conditions.index(index);
            if condition.type_.is_empty() {
                errors.required(&at.child("type"), "");
            }
            let allowed = ["True", "False", "Unknown"];
            if !allowed.contains(&condition.status.as_str()) {
                errors.not_supported(&at.child("status"), &condition.status, &allowed);
            }
        }
    }
}
