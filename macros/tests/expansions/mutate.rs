#[automatically_derived]
impl<T: ::koord_resource::Mutate> ::koord_resource::Mutate for JobSpec<T> {
    fn mutate(&mut self) {
        ::koord_resource::mutate::default(
            &mut self.mode,
            Option::is_none,
            ::koord_resource::serde_json::json!("Now"),
        );
        trim(&mut self.mode);
        ::koord_resource::Mutate::mutate(&mut self.by_name);
        ::koord_resource::Mutate::mutate(&mut self.rest);
    }
}
