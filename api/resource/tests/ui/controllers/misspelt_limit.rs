use koord_resource::controller;

#[controller(name = "pods", for = koord_resource::controller::ResourceKind::POD, rate_limit(per_secnd = 2))]
struct Pods;

fn main() {}
