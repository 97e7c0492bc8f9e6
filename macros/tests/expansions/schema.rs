#[automatically_derived]
impl<T: ::koord_resource::Schema> ::koord_resource::Schema for JobSpec<T> {
    const SHAPE: ::koord_resource::declare::Shape = ::koord_resource::declare::Shape::Object;
    const MEMBERS: ::koord_resource::declare::Members = ::koord_resource::declare::Members::Known(
        &[
            ::koord_resource::declare::Member {
                name: "count",
                shape: <i32 as ::koord_resource::Schema>::SHAPE,
                is_certain: true,
                is_removed: false,
            },
            ::koord_resource::declare::Member {
                name: "mode",
                shape: <Option<String> as ::koord_resource::Schema>::SHAPE,
                is_certain: true,
                is_removed: false,
            },
            ::koord_resource::declare::Member {
                name: "byName",
                shape: <BTreeMap<String, Part> as ::koord_resource::Schema>::SHAPE,
                is_certain: false,
                is_removed: false,
            },
            ::koord_resource::declare::Member {
                name: "names",
                shape: <Vec<String> as ::koord_resource::Schema>::SHAPE,
                is_certain: true,
                is_removed: false,
            },
            ::koord_resource::declare::Member {
                name: "rest",
                shape: <T as ::koord_resource::Schema>::SHAPE,
                is_certain: true,
                is_removed: false,
            },
        ],
    );
    const INSIDE: &'static [::koord_resource::declare::Members] = &[
        ::koord_resource::declare::Members::Unknown,
        ::koord_resource::declare::Members::Unknown,
        ::koord_resource::declare::Members::Unknown,
        ::koord_resource::declare::Members::Unknown,
        <T as ::koord_resource::Schema>::MEMBERS,
    ];
    fn schema(cx: ::koord_resource::declare::Emit) -> ::koord_resource::schema::Schema {
        let Some(cx) = cx.deeper() else { return ::koord_resource::declare::anything() };
        {
            let mut schema = {
                let mut object = ::koord_resource::declare::object("What is wanted.");
                if cx.has("v1") {
                    ::koord_resource::declare::property(
                        &mut object,
                        "count",
                        true,
                        {
                            let mut schema = <i32 as ::koord_resource::Schema>::schema(
                                cx,
                            );
                            schema.description = Some("How much.".to_owned());
                            schema.minimum = Some(
                                ::koord_resource::serde_json::Number::from(0i64),
                            );
                            schema.maximum = Some(
                                ::koord_resource::serde_json::Number::from(10i64),
                            );
                            if cx.has_admission() {
                                schema
                                    .validations
                                    .push(::koord_resource::schema::Rule {
                                        rule: "self == oldSelf".to_owned(),
                                        message: Some("this field cannot be changed".to_owned()),
                                        ..::koord_resource::schema::Rule::default()
                                    });
                            }
                            schema
                        },
                    );
                } else {
                    ::koord_resource::declare::property(
                        &mut object,
                        "amount",
                        true,
                        {
                            let mut schema = <i32 as ::koord_resource::Schema>::schema(
                                cx,
                            );
                            schema.description = Some("How much.".to_owned());
                            schema.minimum = Some(
                                ::koord_resource::serde_json::Number::from(0i64),
                            );
                            schema.maximum = Some(
                                ::koord_resource::serde_json::Number::from(10i64),
                            );
                            if cx.has_admission() {
                                schema
                                    .validations
                                    .push(::koord_resource::schema::Rule {
                                        rule: "self == oldSelf".to_owned(),
                                        message: Some("this field cannot be changed".to_owned()),
                                        ..::koord_resource::schema::Rule::default()
                                    });
                            }
                            schema
                        },
                    );
                    ::koord_resource::declare::renamed(&mut object, "amount", "count");
                }
                if cx.has("v1") {
                    ::koord_resource::declare::property(
                        &mut object,
                        "mode",
                        false,
                        {
                            let mut schema = <Option<
                                String,
                            > as ::koord_resource::Schema>::schema(cx);
                            schema.default = Some(
                                ::koord_resource::serde_json::json!("Now"),
                            );
                            if cx.is_hardened() {
                                schema.enum_ = vec![
                                    ::koord_resource::serde_json::json!("Now"),
                                    ::koord_resource::serde_json::json!("Later")
                                ];
                            }
                            schema
                        },
                    );
                } else {}
                ::koord_resource::declare::property(
                    &mut object,
                    "byName",
                    cx.has_admission(),
                    {
                        let mut schema = <BTreeMap<
                            String,
                            Part,
                        > as ::koord_resource::Schema>::schema(cx);
                        if cx.has_admission() {
                            ::koord_resource::declare::make_not_empty(&mut schema);
                        }
                        schema
                    },
                );
                ::koord_resource::declare::property(
                    &mut object,
                    "names",
                    true,
                    {
                        let mut schema = <Vec<
                            String,
                        > as ::koord_resource::Schema>::schema(cx);
                        ::koord_resource::declare::items(
                            &mut schema,
                            |schema| {
                                schema.min_length = Some(1u64);
                            },
                        );
                        if cx
                            .is_among(::koord_resource::Versions {
                                since: None,
                                until: Some("v2"),
                            })
                        {
                            schema.min_items = Some(1u64);
                        }
                        if cx
                            .is_among(::koord_resource::Versions {
                                since: Some("v2"),
                                until: None,
                            })
                        {
                            schema.max_items = Some(8u64);
                        }
                        schema
                    },
                );
                ::koord_resource::declare::property(
                    &mut object,
                    "rest",
                    true,
                    <T as ::koord_resource::Schema>::schema(cx),
                );
                object
            };
            if cx.has("v1") {
                schema
                    .validations
                    .push(
                        ::koord_resource::declare::count_rule(
                            ::koord_resource::rule::HowMany::AtMost,
                            &["mode", "byName"],
                        ),
                    );
            } else {}
            schema
        }
    }
}
