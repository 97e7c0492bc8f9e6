use koord_resource::controller;

#[controller(name = "pods", for = Pod, watches(Node, Service, by = owner))]
struct Pods;

fn main() {}
