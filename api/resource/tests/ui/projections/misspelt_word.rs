use koord_resource::Projection;

#[derive(Projection)]
#[koord(kind = koord_resource::controller::ResourceKind::POD, indexes = ())]
struct PodView {
    spec: String,
}

fn main() {}
