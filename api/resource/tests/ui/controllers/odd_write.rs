use koord_resource::controller;

#[controller(name = "pods", for(koord_resource::controller::ResourceKind::POD, writes = [statuses]))]
struct Pods;

fn main() {}
