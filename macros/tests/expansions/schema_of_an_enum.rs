#[automatically_derived]
impl ::koord_resource::Schema for Target {
    const SHAPE: ::koord_resource::declare::Shape = ::koord_resource::declare::Shape::Object;
    fn schema(cx: ::koord_resource::declare::Emit) -> ::koord_resource::schema::Schema {
        let Some(cx) = cx.deeper() else { return ::koord_resource::declare::anything() };
        ::koord_resource::declare::tagged(
            "",
            "type",
            [
                (
                    "Disk",
                    {
                        let mut object = ::koord_resource::declare::object("");
                        ::koord_resource::declare::property(
                            &mut object,
                            "path",
                            true,
                            <String as ::koord_resource::Schema>::schema(cx),
                        );
                        object
                    },
                ),
                ("Bucket", <Bucket as ::koord_resource::Schema>::schema(cx)),
                ("Nothing", ::koord_resource::declare::object("")),
            ],
        )
    }
}
