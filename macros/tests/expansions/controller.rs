struct Cards {
    nodes: Arc<Store<NodeView>>,
    cards: Arc<Store<CardView>>,
    greeting: String,
}
#[automatically_derived]
impl Cards {
    /// The controller as data.
    pub const SPEC: ::koord_resource::controller::ControllerSpec = ::koord_resource::controller::ControllerSpec {
        name: "cards",
        for_kind: <NodeView as ::koord_runtime::projection::Projection>::KIND,
        owns: &[<CardView as ::koord_runtime::projection::Projection>::KIND],
        watches: &[],
        concurrency: 2usize,
        rate_limit: ::koord_resource::controller::RateLimit::DEFAULT,
        gate: None,
        rbac: &[],
    };
    /// Asks for the caches that the controller reads, and says which keys a change in them leads to.
    pub fn wire(
        wiring: &mut ::koord_runtime::Wiring<'_>,
        greeting: String,
    ) -> ::core::result::Result<::std::sync::Arc<Self>, ::std::convert::Infallible> {
        let nodes = wiring.reads::<NodeView>();
        let cards = wiring
            .reads_some::<
                CardView,
            >(
                &::koord_runtime::reflector::Selection {
                    namespace: ::std::string::String::from("default"),
                    ..::koord_runtime::reflector::Selection::default()
                },
            );
        wiring.on(&nodes, ::koord_runtime::controller::same_key);
        wiring.on(&cards, by_name);
        Ok(::std::sync::Arc::new(Self { nodes, cards, greeting }))
    }
}
