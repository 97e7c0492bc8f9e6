use std::sync::Arc;

use koord_resource::controller;

mod runtime {
    pub struct Wiring<'a>(pub &'a str);
}

struct Store<P>(P);

#[controller(name = "pods", for = pots, runtime = crate::runtime)]
struct Pods {
    pods: Arc<Store<String>>,
    greeting: String,
}

fn main() {
    println!("{}", Pods::SPEC.name);
    println!("{}", Pods::wire(&mut runtime::Wiring(""), String::new()).is_ok());
}
