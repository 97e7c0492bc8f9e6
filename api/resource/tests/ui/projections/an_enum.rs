use koord_resource::Projection;

#[derive(Projection)]
#[koord(kind = koord_resource::controller::ResourceKind::POD)]
enum PodView {
    Spec,
}

fn main() {}
