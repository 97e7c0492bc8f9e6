use koord_resource::controller;

#[controller(name = pods, for = Pod)]
struct Pods;

fn main() {}
