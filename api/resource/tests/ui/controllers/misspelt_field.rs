use koord_resource::controller;

#[controller(name = "pods", for = pod)]
struct Pods {
    pods: (),
}

fn main() {}
