use koord_resource::controller;

#[controller(name = "pods", for = pods, arguments(&self))]
struct Pods {
    pods: std::sync::Arc<Store<Pod>>,
}

fn main() {}
