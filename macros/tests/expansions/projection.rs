#[automatically_derived]
impl ::koord_runtime::projection::Projection for CardView {
    const KIND: ::koord_resource::controller::ResourceKind = ::koord_resource::controller::ResourceKind::of(
        &<Card as ::koord_resource::Resource>::INFO,
    );
    type Wire<'a> = CardViewWire<'a>;
    type Index = ();
    fn project(
        wire: CardViewWire<'_>,
        strings: &mut ::koord_runtime::intern::Interner,
    ) -> ::core::result::Result<Self, ::koord_runtime::projection::DecodeError> {
        let _ = &strings;
        Ok(Self {
            spec: ::koord_runtime::projection::part("spec", wire.spec)?,
            status: strings.intern(::koord_runtime::projection::text(wire.status)),
            labels: ::koord_runtime::projection::Labels::read(
                "metadata.labels",
                wire.metadata.labels,
                strings,
            )?,
        })
    }
}
///What is read of the JSON of a [`CardView`].
#[derive(::koord_resource::serde::Deserialize)]
#[serde(crate = "::koord_resource::serde")]
struct CardViewWire<'a> {
    #[serde(borrow, default)]
    metadata: ::koord_runtime::projection::WireMetadata<'a>,
    #[serde(borrow, default)]
    spec: Option<&'a ::koord_resource::serde_json::value::RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a ::koord_resource::serde_json::value::RawValue>,
}
#[automatically_derived]
impl<'a> ::koord_runtime::projection::Metadata<'a> for CardViewWire<'a> {
    fn metadata(&self) -> &::koord_runtime::projection::WireMetadata<'a> {
        &self.metadata
    }
}
