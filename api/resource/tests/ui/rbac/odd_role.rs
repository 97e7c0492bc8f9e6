use koord_resource::controller;

#[controller(name = "c", for = koord_resource::controller::ResourceKind::POD, rbac(group = "", resource = "pods", verbs = [get], role = "a/b"))]
struct Pods;

fn main() {}
