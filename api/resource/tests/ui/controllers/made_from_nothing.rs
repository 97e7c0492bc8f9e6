use koord_resource::controller;

#[controller(name = "pods", for = pods, init(memory))]
struct Pods {
    pods: std::sync::Arc<Store<Pod>>,
}

fn main() {}
