use std::collections::BTreeMap;

use koord_resource::{Schema, Validate};
use serde::Serialize;

#[derive(Serialize, Schema, Validate)]
struct Spec {
    disks: Vec<Disk>,
    by_zone: BTreeMap<String, Vec<Disk>>,
    #[koord(list_type = "map", list_map_key = "name")]
    fine: Vec<Disk>,
}

#[derive(Serialize, Schema, Validate)]
struct Disk {
    name: String,
    #[koord(admission(immutable))]
    size: i32,
}

fn main() {}
