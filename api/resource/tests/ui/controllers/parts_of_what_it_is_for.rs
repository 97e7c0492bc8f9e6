use koord_resource::controller;

#[controller(name = "pods", for = koord_resource::controller::ResourceKind::POD, owns(koord_resource::controller::ResourceKind::POD, by = same_name))]
struct Pods;

fn main() {}
