use koord_resource::controller;

#[controller(name = "pods", for = koord_resource::controller::ResourceKind::POD, watches(koord_resource::controller::ResourceKind::NODE, by = label))]
struct Pods;

fn main() {}
