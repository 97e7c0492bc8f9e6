use koord_resource::controller;

#[controller(name = "pods", for = Pod, owns(Node, Service))]
struct Pods;

fn main() {}
