//! The Go type of Reservations, for patches.

use koord_profile::{
    GoField,
    GoKind::{Flag, Object, Objects, Opaque, Text},
    GoType, METADATA, POD_TEMPLATE,
};

pub(super) const RESERVATION: GoType = GoType {
    name: "v1alpha1.Reservation",
    fields: &[
        GoField::new("apiVersion", Text("string")),
        GoField::new("kind", Text("string")),
        GoField::new("metadata", Object(METADATA)),
        GoField::new("spec", Object(SPEC)),
        GoField::new("status", Object(GoType::open("v1alpha1.ReservationStatus"))),
    ],
};

const SPEC: GoType = GoType {
    name: "v1alpha1.ReservationSpec",
    fields: &[
        GoField::kept("allocateOnce", Flag),
        GoField::new("allocatePolicy", Text("v1alpha1.ReservationAllocatePolicy")),
        GoField::new("expires", Opaque),
        GoField::kept("owners", Objects(GoType::open("v1alpha1.ReservationOwner"))),
        GoField::new("preAllocation", Flag),
        GoField::new("preAllocationPolicy", Object(GoType::open("v1alpha1.PreAllocationPolicy"))),
        GoField::new("taints", Objects(GoType::open("v1.Taint"))),
        GoField::new("template", Object(POD_TEMPLATE)),
        GoField::new("ttl", Opaque),
        GoField::new("unschedulable", Flag),
    ],
};
