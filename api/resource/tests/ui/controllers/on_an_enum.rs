use koord_resource::controller;

#[controller(name = "pods", for = Pod)]
enum Pods {
    One,
}

fn main() {}
