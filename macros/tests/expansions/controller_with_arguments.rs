struct Dealer {
    cards: Arc<Store<CardView>>,
    hands: Arc<Store<Child<Hand>>>,
    nodes: Arc<Store<NodeView>>,
    dealt: u32,
    seats: u32,
}
#[automatically_derived]
impl Dealer {
    /// The controller as data.
    pub const SPEC: ::koord_resource::controller::ControllerSpec = ::koord_resource::controller::ControllerSpec {
        name: "cards",
        for_kind: <CardView as ::koord_runtime::projection::Projection>::KIND,
        owns: &[
            <CardView as ::koord_runtime::projection::Projection>::KIND,
            <Child<Hand> as ::koord_runtime::projection::Projection>::KIND,
        ],
        watches: &[<NodeView as ::koord_runtime::projection::Projection>::KIND],
        concurrency: 1usize,
        rate_limit: ::koord_resource::controller::RateLimit::DEFAULT,
        gate: None,
        rbac: &[
            ::koord_resource::rbac::RbacRule {
                resource: const {
                    &::koord_resource::rbac::Subresource::new(
                        <CardView as ::koord_runtime::projection::Projection>::KIND
                            .plural,
                        "status",
                    )
                }
                    .as_str(),
                ..<CardView as ::koord_runtime::projection::Projection>::KIND
                    .rule(&["patch"])
            },
            ::koord_resource::rbac::RbacRule {
                resource: const {
                    &::koord_resource::rbac::Subresource::new(
                        <CardView as ::koord_runtime::projection::Projection>::KIND
                            .plural,
                        "finalizers",
                    )
                }
                    .as_str(),
                ..<CardView as ::koord_runtime::projection::Projection>::KIND
                    .rule(&["update"])
            },
        ],
    };
    /// Asks for the caches that the controller reads, and says which keys a change in them leads to.
    pub fn wire(
        wiring: &mut ::koord_runtime::Wiring<'_>,
        table: &Table,
    ) -> ::core::result::Result<::std::sync::Arc<Self>, TableError> {
        let cards = wiring.reads::<CardView>();
        let hands = wiring.reads::<Child<Hand>>();
        let nodes = wiring
            .reads_some::<
                NodeView,
            >(
                &::koord_runtime::reflector::Selection {
                    fields: ::std::string::String::from(table.fields()),
                    ..::koord_runtime::reflector::Selection::default()
                },
            );
        let dealt = ::core::default::Default::default();
        let seats = table.seats()?;
        wiring.on(&cards, ::koord_runtime::controller::same_key);
        wiring
            .on(
                &hands,
                ::koord_runtime::controller::its_owner(
                    <CardView as ::koord_runtime::projection::Projection>::KIND,
                ),
            );
        Ok(
            ::std::sync::Arc::new(Self {
                cards,
                hands,
                nodes,
                dealt,
                seats,
            }),
        )
    }
}
