use koord_resource::controller;

#[controller(name = "pods", for = Pod, rate_limit(base_ms = "5"))]
struct Pods;

fn main() {}
