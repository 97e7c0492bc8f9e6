use koord_resource::Projection;

mod runtime {
    pub mod intern {
        pub struct Interner;
    }
    pub mod projection {
        use koord_resource::controller::ResourceKind;

        pub struct DecodeError;
        pub struct WireObject<'a, M>(std::marker::PhantomData<(&'a (), M)>);
        pub trait Projection: Sized {
            const KIND: ResourceKind;
            type Wire<'a>;
            type Index;
            fn project(wire: Self::Wire<'_>, strings: &mut super::intern::Interner) -> Result<Self, DecodeError>;
        }
    }
}

#[derive(Projection)]
#[koord(kind = koord_resource::controller::ResourceKind::POD, runtime = crate::runtime, indexes = ())]
struct PodView {
    spec: String,
}

fn plural<P: runtime::projection::Projection>() -> &'static str {
    P::KIND.plural
}

fn main() {
    println!("{}", plural::<PodView>());
}
