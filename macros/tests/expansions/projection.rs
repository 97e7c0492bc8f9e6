#[automatically_derived]
impl ::koord_runtime::outcome::WithStatus for CardView {
    type Status = Arc<str>;
    fn status(&self) -> ::core::option::Option<&Arc<str>> {
        Some(&self.status)
    }
}
#[automatically_derived]
impl ::koord_runtime::projection::Labelled for CardView {
    fn labels(&self) -> &::koord_runtime::projection::Labels {
        &self.labels
    }
}
#[automatically_derived]
impl ::koord_runtime::projection::Projection for CardView {
    const KIND: ::koord_resource::controller::ResourceKind = ::koord_resource::controller::ResourceKind::of(
        &<Card as ::koord_resource::Resource>::INFO,
    );
    type Wire<'a> = ::koord_runtime::projection::WireObject<'a, CardViewMembers<'a>>;
    type Index = ();
    fn project(
        wire: Self::Wire<'_>,
        strings: &mut ::koord_runtime::intern::Interner,
    ) -> ::core::result::Result<Self, ::koord_runtime::projection::DecodeError> {
        let _ = &strings;
        Ok(Self {
            spec: ::koord_runtime::projection::part("spec", wire.members.spec)?,
            status: strings
                .intern(::koord_runtime::projection::text(wire.members.status)),
            labels: ::koord_runtime::projection::Labels::read(
                "metadata.labels",
                wire.metadata.labels,
                strings,
            )?,
        })
    }
}
///What is read of the JSON of a [`CardView`], beside its metadata.
#[derive(::koord_resource::serde::Deserialize)]
#[serde(crate = "::koord_resource::serde", rename_all = "camelCase")]
struct CardViewMembers<'a> {
    #[serde(borrow, default)]
    spec: Option<&'a ::koord_resource::serde_json::value::RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a ::koord_resource::serde_json::value::RawValue>,
}
