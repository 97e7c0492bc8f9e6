use koord_resource::controller;

#[controller(name = "Pods", for = koord_resource::controller::ResourceKind::POD)]
struct Pods;

fn main() {}
