use koord_resource::Projection;

#[derive(Projection)]
struct PodView {
    spec: String,
}

fn main() {}
