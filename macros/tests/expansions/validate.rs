#[automatically_derived]
impl<T: ::koord_resource::Validate> ::koord_resource::Validate for JobSpec<T> {
    const CHANGES: ::koord_resource::validate::Changes = ::koord_resource::validate::Changes::Ruled;
    fn validate_schema(
        &self,
        at: &::koord_resource::field::Path<'_>,
        errors: &mut ::koord_resource::field::Errors,
    ) {
        {
            let at = &at.child("count");
            {
                let value = &self.count;
                ::koord_resource::rule::minimum(value, 0i64, false, at, errors);
                ::koord_resource::rule::maximum(value, 10i64, false, at, errors);
            }
        }
        {
            let at = &at.child("byName");
            ::koord_resource::Validate::validate_schema(&self.by_name, at, errors);
        }
        {
            let at = &at.child("names");
            {
                let value = &self.names;
                for (index, value) in value.iter().enumerate() {
                    let at = &at.index(index);
                    {
                        let value = value;
                        ::koord_resource::rule::min_length(value, 1u64, at, errors);
                    }
                }
                ::koord_resource::rule::max_items(value, 8u64, at, errors);
            }
        }
        {
            let at = &at.child("rest");
            ::koord_resource::Validate::validate_schema(&self.rest, at, errors);
        }
        ::koord_resource::rule::one_of(
            ::koord_resource::rule::HowMany::AtMost,
            &[
                ("mode", self.mode.is_some()),
                ("byName", !BTreeMap::is_empty(&self.by_name)),
            ],
            at,
            errors,
        );
    }
    fn validate_admission(
        &self,
        at: &::koord_resource::field::Path<'_>,
        errors: &mut ::koord_resource::field::Errors,
    ) {
        {
            let at = &at.child("byName");
            {
                let value = &self.by_name;
                ::koord_resource::rule::not_empty(value, at, errors);
            }
            ::koord_resource::Validate::validate_admission(&self.by_name, at, errors);
        }
        {
            let at = &at.child("rest");
            ::koord_resource::Validate::validate_admission(&self.rest, at, errors);
        }
        whole(self, at, errors);
    }
    fn validate_update(
        &self,
        old: &Self,
        at: &::koord_resource::field::Path<'_>,
        errors: &mut ::koord_resource::field::Errors,
    ) {
        {
            let at = &at.child("count");
            ::koord_resource::rule::immutable(&self.count, &old.count, at, errors);
        }
        {
            let at = &at.child("byName");
            grows(&self.by_name, &old.by_name, at, errors);
            ::koord_resource::Validate::validate_update(
                &self.by_name,
                &old.by_name,
                at,
                errors,
            );
        }
        {
            let at = &at.child("rest");
            ::koord_resource::Validate::validate_update(
                &self.rest,
                &old.rest,
                at,
                errors,
            );
        }
    }
}
