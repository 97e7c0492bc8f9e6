use koord_resource::controller;

#[controller(name = "pods", for = koord_resource::controller::ResourceKind::POD, reads(koord_resource::controller::ResourceKind::NODE, by = owner))]
struct Pods;

fn main() {}
