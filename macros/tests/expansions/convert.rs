#[automatically_derived]
impl<T: ::koord_resource::Convert> ::koord_resource::Convert for JobSpec<T> {
    fn up(
        value: &mut ::koord_resource::serde_json::Value,
        from: &str,
        at: &::koord_resource::convert::Place<'_>,
    ) -> ::core::result::Result<(), ::koord_resource::convert::ConvertError> {
        let Some(object) = value.as_object_mut() else { return Ok(()) };
        if ::koord_resource::convert::version_rank(from)
            < ::koord_resource::convert::version_rank("v1")
        {
            ::koord_resource::convert::rename(object, "amount", "count");
        }
        ::koord_resource::convert::field(
            object,
            "byName",
            |value| {
                <BTreeMap<
                    String,
                    Part,
                > as ::koord_resource::Convert>::up(value, from, &at.child("byName"))
            },
        )?;
        ::koord_resource::convert::field(
            object,
            "rest",
            |value| {
                <T as ::koord_resource::Convert>::up(value, from, &at.child("rest"))
            },
        )?;
        Ok(())
    }
    fn down(
        value: &mut ::koord_resource::serde_json::Value,
        to: &str,
        at: &::koord_resource::convert::Place<'_>,
        lost: &mut ::koord_resource::convert::Lost,
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
            ::koord_resource::convert::drop_added(object, "mode", at, lost);
        }
        ::koord_resource::convert::field(
            object,
            "byName",
            |value| {
                <BTreeMap<
                    String,
                    Part,
                > as ::koord_resource::Convert>::down(
                    value,
                    to,
                    &at.child("byName"),
                    lost,
                )
            },
        )?;
        ::koord_resource::convert::field(
            object,
            "rest",
            |value| {
                <T as ::koord_resource::Convert>::down(
                    value,
                    to,
                    &at.child("rest"),
                    lost,
                )
            },
        )?;
        Ok(())
    }
}
