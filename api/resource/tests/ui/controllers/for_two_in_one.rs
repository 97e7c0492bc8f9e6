use koord_resource::controller;

#[controller(name = "pods", for(pods, nodes))]
struct Pods;

fn main() {}
