use koord_resource::controller;

#[controller(name = "pods", owns(koord_resource::controller::ResourceKind::POD))]
struct Pods;

fn main() {}
