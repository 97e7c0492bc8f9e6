use koord_resource::{controller, controller::ControllerSpec, controllers};

#[controller(name = "pods", four = pods)]
struct Pods;

const ALL: &[ControllerSpec] = controllers![Pods];

fn main() {
    println!("{}", ALL.len());
}
