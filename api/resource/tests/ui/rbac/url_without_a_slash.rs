use koord_resource::controller;

#[controller(name = "c", for = koord_resource::controller::ResourceKind::POD, rbac(urls = ["metrics"], verbs = [get]))]
struct Pods;

fn main() {}
