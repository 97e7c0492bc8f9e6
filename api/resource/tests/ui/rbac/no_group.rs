use koord_resource::controller;

#[controller(name = "c", for = koord_resource::controller::ResourceKind::POD, rbac(resource = "pods", verbs = [get]))]
struct Pods;

fn main() {}
