#[automatically_derived]
impl<T: ::koord_resource::Convert> ::koord_resource::Convert for JobSpec<T> {
    const NAMED: &'static [&'static str] = &["v1", "v2"];
    const NAMED_INSIDE: &'static [&'static [&'static str]] = &[
        <BTreeMap<String, Part> as ::koord_resource::Convert>::NAMED,
        <T as ::koord_resource::Convert>::NAMED,
    ];
    const NAMED_DEEPER: &'static [&'static [&'static [&'static str]]] = &[
        <BTreeMap<String, Part> as ::koord_resource::Convert>::NAMED_INSIDE,
        <T as ::koord_resource::Convert>::NAMED_INSIDE,
    ];
    fn up(
        value: &mut ::koord_resource::serde_json::Value,
        from: &str,
        at: &::koord_resource::convert::Place<'_>,
        was: &::koord_resource::convert::Kept,
        kept: &mut ::koord_resource::convert::Kept,
    ) -> ::core::result::Result<(), ::koord_resource::convert::ConvertError> {
        let Some(object) = value.as_object_mut() else { return Ok(()) };
        if ::koord_resource::convert::version_rank(from)
            < ::koord_resource::convert::version_rank("v1")
        {
            ::koord_resource::convert::rename(object, "amount", "count");
        }
        if ::koord_resource::convert::version_rank(from)
            < ::koord_resource::convert::version_rank("v1")
        {
            ::koord_resource::convert::restore_added(object, "mode", was);
        }
        ::koord_resource::convert::field_up::<
            BTreeMap<String, Part>,
        >(object, "byName", from, at, was, kept)?;
        ::koord_resource::convert::field_up::<T>(object, "rest", from, at, was, kept)?;
        Ok(())
    }
    fn down(
        value: &mut ::koord_resource::serde_json::Value,
        to: &str,
        at: &::koord_resource::convert::Place<'_>,
        was: &::koord_resource::convert::Kept,
        kept: &mut ::koord_resource::convert::Kept,
    ) -> ::core::result::Result<(), ::koord_resource::convert::ConvertError> {
        let Some(object) = value.as_object_mut() else { return Ok(()) };
        if ::koord_resource::convert::version_rank(to)
            < ::koord_resource::convert::version_rank("v1")
        {
            ::koord_resource::convert::rename(object, "count", "amount");
        }
        if ::koord_resource::convert::version_rank(to)
            < ::koord_resource::convert::version_rank("v1")
        {
            ::koord_resource::convert::drop_added(object, "mode", kept);
        }
        ::koord_resource::convert::field_down::<
            BTreeMap<String, Part>,
        >(object, "byName", to, at, was, kept)?;
        ::koord_resource::convert::field_down::<T>(object, "rest", to, at, was, kept)?;
        Ok(())
    }
    fn name_in<'n>(version: &str, name: &'n str) -> ::core::option::Option<&'n str> {
        let version = ::koord_resource::convert::version_rank(version);
        match name {
            "count" => {
                if version < ::koord_resource::convert::version_rank("v1") {
                    Some("amount")
                } else {
                    Some(name)
                }
            }
            "mode" => {
                if version < ::koord_resource::convert::version_rank("v1") {
                    None
                } else {
                    Some(name)
                }
            }
            _ => Some(name),
        }
    }
}
