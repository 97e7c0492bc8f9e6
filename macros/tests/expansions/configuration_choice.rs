#[automatically_derived]
impl ::koord_configuration::schemars::JsonSchema for Mode {
    fn schema_name() -> ::std::borrow::Cow<'static, str> {
        ::std::borrow::Cow::Borrowed("Mode")
    }
    fn schema_id() -> ::std::borrow::Cow<'static, str> {
        ::std::borrow::Cow::Borrowed(
            ::core::concat!(::core::module_path!(), "::", "Mode"),
        )
    }
    fn json_schema(
        _: &mut ::koord_configuration::schemars::SchemaGenerator,
    ) -> ::koord_configuration::schemars::Schema {
        ::koord_configuration::declare::choice(
            "How objects are deleted.",
            &[("with-owned", "With what they own."), ("alone", "")],
        )
    }
}
#[automatically_derived]
impl ::koord_configuration::Setting for Mode {
    fn schema(
        generator: &mut ::koord_configuration::schemars::SchemaGenerator,
    ) -> ::koord_configuration::schemars::Schema {
        generator.subschema_for::<Self>()
    }
}
