use koord_resource::Projection;

#[derive(PartialEq, Projection)]
#[koord(kind = koord_resource::controller::ResourceKind::POD)]
struct PodView {
    spec: String,
}

#[derive(PartialEq, Projection)]
#[koord(kind = koord_resource::controller::ResourceKind::NODE)]
struct NodeView {
    spec: String,
}

fn main() {}
