#[automatically_derived]
impl ::core::default::Default for CleanerConfiguration {
    fn default() -> Self {
        Self {
            workers: 4,
            keep: ::koord_configuration::declare::default_of(
                "CleanerConfiguration.keep",
                ::koord_configuration::serde_json::json!("24h"),
            ),
            except: ::core::default::Default::default(),
            pauses: ::core::default::Default::default(),
            selector: ::core::default::Default::default(),
        }
    }
}
#[automatically_derived]
impl ::koord_configuration::schemars::JsonSchema for CleanerConfiguration {
    fn schema_name() -> ::std::borrow::Cow<'static, str> {
        ::std::borrow::Cow::Borrowed("CleanerConfiguration")
    }
    fn schema_id() -> ::std::borrow::Cow<'static, str> {
        ::std::borrow::Cow::Borrowed(
            ::core::concat!(::core::module_path!(), "::", "CleanerConfiguration"),
        )
    }
    fn json_schema(
        generator: &mut ::koord_configuration::schemars::SchemaGenerator,
    ) -> ::koord_configuration::schemars::Schema {
        let unset = <Self as ::core::default::Default>::default();
        let mut section = ::koord_configuration::declare::Section::new(
            "The configuration of a cleaner.",
        );
        section
            .field(::koord_configuration::declare::Field {
                name: "workers",
                description: "How many objects are deleted side by side.",
                no_effect: ::core::option::Option::None,
                required: false,
                schema: <u32 as ::koord_configuration::Setting>::schema(generator),
                keywords: ::std::vec![
                    ("minimum", ::koord_configuration::serde_json::json!(1i64))
                ],
                default: ::koord_configuration::serde_json::to_value(&unset.workers).ok(),
            });
        section
            .field(::koord_configuration::declare::Field {
                name: "keep",
                description: "How long an object is kept.",
                no_effect: ::core::option::Option::None,
                required: false,
                schema: <Duration as ::koord_configuration::Setting>::schema(generator),
                keywords: ::std::vec![],
                default: ::koord_configuration::serde_json::to_value(&unset.keep).ok(),
            });
        section
            .field(::koord_configuration::declare::Field {
                name: "except",
                description: "What is left alone.",
                no_effect: ::core::option::Option::Some("all is deleted"),
                required: false,
                schema: <Vec<
                    String,
                > as ::koord_configuration::Setting>::schema(generator),
                keywords: ::std::vec![
                    ("items", ::koord_configuration::serde_json::json!({ "pattern" :
                    ::koord_configuration::serde_json::json!("^[a-z]*$") }))
                ],
                default: ::koord_configuration::serde_json::to_value(&unset.except).ok(),
            });
        section
            .field(::koord_configuration::declare::Field {
                name: "pauses",
                description: "When nothing is deleted.",
                no_effect: ::core::option::Option::None,
                required: false,
                schema: <Vec<
                    Pause,
                > as ::koord_configuration::Setting>::schema(generator),
                keywords: ::std::vec![],
                default: ::koord_configuration::serde_json::to_value(&unset.pauses).ok(),
            });
        section
            .field(::koord_configuration::declare::Field {
                name: "selector",
                description: "",
                no_effect: ::core::option::Option::None,
                required: false,
                schema: ::koord_configuration::declare::opaque(true),
                keywords: ::std::vec![],
                default: ::koord_configuration::serde_json::to_value(&unset.selector)
                    .ok(),
            });
        section.into_schema()
    }
}
#[automatically_derived]
impl ::koord_configuration::Setting for CleanerConfiguration {
    fn schema(
        generator: &mut ::koord_configuration::schemars::SchemaGenerator,
    ) -> ::koord_configuration::schemars::Schema {
        generator.subschema_for::<Self>()
    }
    fn set_defaults(&mut self) {
        ::koord_configuration::declare::replace_zero(&mut self.workers, || 4);
        ::koord_configuration::Setting::set_defaults(&mut self.pauses);
        ({
            let function: fn(&mut Self) = Self::complete;
            function
        })(self);
    }
    fn validate(&self, problems: &mut ::koord_configuration::Problems) {
        problems
            .within(
                "keep",
                |problems| {
                    check_time(&self.keep, problems);
                },
            );
        problems
            .within(
                "pauses",
                |problems| {
                    ::koord_configuration::Setting::validate(&self.pauses, problems);
                },
            );
        ({
            let function: fn(&Self, &mut ::koord_configuration::Problems) = Self::check;
            function
        })(self, problems);
    }
    fn warn(&self, unset: &Self, problems: &mut ::koord_configuration::Problems) {
        ::koord_configuration::declare::warn_of_no_effect(
            &self.except,
            &unset.except,
            "except",
            "all is deleted",
            problems,
        );
        problems
            .within(
                "pauses",
                |problems| ::koord_configuration::Setting::warn(
                    &self.pauses,
                    &unset.pauses,
                    problems,
                ),
            );
    }
}
#[automatically_derived]
impl ::koord_configuration::Configuration for CleanerConfiguration {
    const API_VERSION: &'static str = "cleaner.example.com/v1";
    const KIND: &'static str = "CleanerConfiguration";
    const ITEM_KEYS: &'static [&'static str] = &["name"];
}
