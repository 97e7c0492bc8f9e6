use koord_resource::controller;

#[controller(name = "pods", for = koord_resource::controller::ResourceKind::POD, concurency = 2)]
struct Pods;

fn main() {}
