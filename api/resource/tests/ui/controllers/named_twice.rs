use koord_resource::controller;

#[controller(name = "pods", for = pods, watches(pods))]
struct Pods {
    pods: std::sync::Arc<Store<Pod>>,
}

fn main() {}
