use koord_resource::controller;

#[controller(name = "pods", for = "pods")]
struct Pods;

fn main() {}
