use koord_resource::controller;

#[controller(name = "pods", for = koord_resource::controller::ResourceKind::POD, for = koord_resource::controller::ResourceKind::NODE)]
struct Pods;

fn main() {}
