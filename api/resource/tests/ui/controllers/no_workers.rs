use koord_resource::controller;

#[controller(name = "pods", for = koord_resource::controller::ResourceKind::POD, concurrency = 0)]
struct Pods;

fn main() {}
