use koord_resource::controller;

#[controller(name = "pods", for = koord_resource::controller::ResourceKind::POD, arguments(name: String))]
struct Pods;

fn main() {}
