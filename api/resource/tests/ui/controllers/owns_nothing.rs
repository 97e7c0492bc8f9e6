use koord_resource::controller;

#[controller(name = "pods", for = Pod, owns)]
struct Pods;

fn main() {}
