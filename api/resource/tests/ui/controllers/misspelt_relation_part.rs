use koord_resource::controller;

#[controller(name = "pods", for = koord_resource::controller::ResourceKind::POD, watches(koord_resource::controller::ResourceKind::NODE, predicat = by_node))]
struct Pods;

fn main() {}
