#[automatically_derived]
impl ::koord_resource::Resource for Job {
    const INFO: ::koord_resource::ResourceInfo = ::koord_resource::ResourceInfo {
        group: "example.com",
        version: "v1",
        kind: "Job",
        list_kind: "JobList",
        plural: "jobs",
        singular: "job",
        scope: ::koord_resource::Scope::Cluster,
        short_names: &["j"],
        categories: &[],
        status: Some(::koord_resource::Versions::ALL),
        scale: &[],
        columns: &[
            ::koord_resource::Column {
                name: "Mode",
                type_: "string",
                json_path: ".spec.mode",
                description: "",
                format: "",
                priority: 0i32,
                versions: ::koord_resource::Versions::ALL,
            },
        ],
        selectable_fields: &[],
        annotations: &[],
        labels: &[],
        served: ::koord_resource::Served {
            served: true,
            storage: true,
            deprecated: None,
            skipped: false,
        },
        older: &[
            ::koord_resource::Older {
                version: "v1beta1",
                served: ::koord_resource::Served {
                    served: true,
                    storage: false,
                    deprecated: None,
                    skipped: false,
                },
            },
        ],
        extras: ::koord_resource::Extras {
            short_names: &[],
            categories: &[],
            columns: &[],
            selectable_fields: &[],
        },
    };
    fn metadata(
        &self,
    ) -> &::koord_resource::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        &self.metadata
    }
    fn metadata_mut(
        &mut self,
    ) -> &mut ::koord_resource::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        &mut self.metadata
    }
}
#[automatically_derived]
impl ::koord_resource::k8s_openapi::Resource for Job {
    const API_VERSION: &'static str = "example.com/v1";
    const GROUP: &'static str = "example.com";
    const KIND: &'static str = <Self as ::koord_resource::Resource>::INFO.kind;
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = <Self as ::koord_resource::Resource>::INFO
        .plural;
    type Scope = ::koord_resource::k8s_openapi::ClusterResourceScope;
}
#[automatically_derived]
impl ::koord_resource::k8s_openapi::Metadata for Job {
    type Ty = ::koord_resource::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    fn metadata(&self) -> &Self::Ty {
        &self.metadata
    }
    fn metadata_mut(&mut self) -> &mut Self::Ty {
        &mut self.metadata
    }
}
#[automatically_derived]
impl ::koord_resource::serde::Serialize for Job {
    fn serialize<S: ::koord_resource::serde::Serializer>(
        &self,
        serializer: S,
    ) -> ::core::result::Result<S::Ok, S::Error> {
        let mut object = ::koord_resource::serde::Serializer::serialize_struct(
            serializer,
            stringify!(Job),
            5usize,
        )?;
        ::koord_resource::serde::ser::SerializeStruct::serialize_field(
            &mut object,
            "apiVersion",
            <Self as ::koord_resource::k8s_openapi::Resource>::API_VERSION,
        )?;
        ::koord_resource::serde::ser::SerializeStruct::serialize_field(
            &mut object,
            "kind",
            <Self as ::koord_resource::k8s_openapi::Resource>::KIND,
        )?;
        ::koord_resource::serde::ser::SerializeStruct::serialize_field(
            &mut object,
            "metadata",
            &self.metadata,
        )?;
        ::koord_resource::serde::ser::SerializeStruct::serialize_field(
            &mut object,
            "spec",
            &self.spec,
        )?;
        if !Option::is_none(&self.status) {
            ::koord_resource::serde::ser::SerializeStruct::serialize_field(
                &mut object,
                "status",
                &self.status,
            )?;
        }
        ::koord_resource::serde::ser::SerializeStruct::end(object)
    }
}
#[cfg(test)]
#[::core::prelude::v1::test]
fn the_definition_of_job_is_legal() {
    ::koord_resource::document::assert_legal::<Job>();
}
