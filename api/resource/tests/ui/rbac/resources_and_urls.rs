use koord_resource::controller;

#[controller(name = "c", for = koord_resource::controller::ResourceKind::POD, rbac(group = "", resource = "pods", urls = ["/x"], verbs = [get]))]
struct Pods;

fn main() {}
