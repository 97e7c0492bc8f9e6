use koord_resource::controller;

#[controller(for = koord_resource::controller::ResourceKind::POD)]
struct Pods;

fn main() {}
