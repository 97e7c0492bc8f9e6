//! `#[derive(Resource)]`: the identity of a kind, and how its root is written.

mod legality;
mod root;
mod served;

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;

use root::{Column, Extras, Scale, Selectable};
pub(crate) use root::{GivenPath, Root};

use crate::{
    model::{Body, Item},
    report::Report,
};

/// Notes what is wrong with the root as a whole.
pub(crate) fn check(item: &Item<'_>, root: &Root, report: &Report) {
    let Body::Struct(fields) = &item.body else {
        report.on(item.ident, "a resource is a struct with a field `metadata`");
        return;
    };
    if !fields.iter().any(|field| field.name == "metadata") {
        report.on(item.ident, "a resource needs a field `metadata: ObjectMeta`");
    }
    for name in ["apiVersion", "kind"] {
        if let Some(field) = fields.iter().find(|field| field.name == name) {
            report.at(field.span, format!("`{name}` is written by the derive; leave the field out"));
        }
    }
    for field in fields.iter().filter(|field| field.serde.flatten || field.serde.written_by.is_some()) {
        report.at(field.span, "the fields of a root are written plainly; move this into `spec` or `status`");
    }
    if !item.generics.params.is_empty() {
        report.on(&item.generics.params, "a kind has no parameters");
    }
    for name in ["group", "version", "scope"] {
        // What is there and wrong is not missing too.
        if !item.entries.iter().any(|entry| entry.name() == name) {
            report.on(item.ident, format!("a resource needs `#[koord({name} = \"…\")]`"));
        }
    }
    if root.status.is_some() && !fields.iter().any(|field| field.name == "status") {
        report.on(item.ident, "`status` makes a subresource of the field `status`, which is not there");
    }
    check_scales(root, report);
    served::check(root, report);
}

/// Notes scales without a status to read, and two in one version.
fn check_scales(root: &Root, report: &Report) {
    for (index, scale) in root.scales.iter().enumerate() {
        match &root.status {
            None => report.on(&scale.status, "`scale` reads the status subresource; add `status`"),
            Some(status) if !status.contain(&scale.versions) => report.on(
                &scale.status,
                "some versions with `scale` lack the status subresource that it reads; give `scale` the `since` and `until` of `status`, as in `status(since = \"v1\"), scale(…, since = \"v1\")`",
            ),
            Some(_) => {}
        }
        if root.scales[..index].iter().any(|earlier| earlier.versions.meet(&scale.versions)) {
            report.at(
                scale.span,
                "one version has two `scale`; limit them, as in `scale(…, since = \"v1\"), scale(…, until = \"v1\")`",
            );
        }
    }
}

/// The implementations of `Resource`, of the traits of k8s-openapi, and of `Serialize`, and the test of the definition.
pub(crate) fn expand(item: &Item<'_>, root: &Root) -> TokenStream {
    let Some(metadata) = item.fields().iter().find(|field| field.name == "metadata").map(|field| &field.member) else {
        return TokenStream::new();
    };
    let identity = identity(item, root, &quote!(&self.#metadata), &quote!(&mut self.#metadata), None);
    let (serialize, test) = (serialize(item), legality::expand(item, root));
    quote!(#identity #serialize #test)
}

/// The same implementations after a mistake, with functions that are never called.
pub(crate) fn stand_in(item: &Item<'_>, root: &Root) -> TokenStream {
    if !item.generics.params.is_empty() {
        return TokenStream::new();
    }
    let (ident, krate) = (item.ident, &item.krate);
    // What the type lacks beside is said where it is used: with a lifetime, the bound is not checked here.
    let bound = quote!(where for<'stand_in> Self: ::core::clone::Clone + #krate::serde::de::DeserializeOwned);
    let identity = identity(item, root, &quote!(loop {}), &quote!(loop {}), Some(&bound));
    quote! {
        #identity
        impl #krate::serde::Serialize for #ident {
            fn serialize<S: #krate::serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                #krate::serde::Serializer::serialize_unit(serializer)
            }
        }
    }
}

/// The identity of a kind, whose metadata two expressions give.
fn identity(
    item: &Item<'_>,
    root: &Root,
    metadata: &TokenStream,
    metadata_mut: &TokenStream,
    bound: Option<&TokenStream>,
) -> TokenStream {
    let (ident, krate) = (item.ident, &item.krate);
    let info = info(item, root);
    let scope =
        if root.namespaced == Some(false) { quote!(ClusterResourceScope) } else { quote!(NamespaceResourceScope) };
    let (group, version) = (text(root.group.as_ref()), text(root.version.as_ref()));
    let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    let rules: Vec<TokenStream> = root.rbac.iter().flat_map(|permissions| permissions.expand(krate)).collect();
    let rbac = (!rules.is_empty()).then(|| {
        quote! {
            #[automatically_derived]
            impl #ident {
                /// Permissions that come with the kind.
                pub const RBAC: &'static [#krate::rbac::RbacRule] = &[#(#rules),*];
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl #krate::Resource for #ident #bound {
            const INFO: #krate::ResourceInfo = #info;
            fn metadata(&self) -> &#krate::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                #metadata
            }
            fn metadata_mut(&mut self) -> &mut #krate::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                #metadata_mut
            }
        }
        #[automatically_derived]
        impl #krate::k8s_openapi::Resource for #ident #bound {
            const API_VERSION: &'static str = #api_version;
            const GROUP: &'static str = #group;
            const KIND: &'static str = <Self as #krate::Resource>::INFO.kind;
            const VERSION: &'static str = #version;
            const URL_PATH_SEGMENT: &'static str = <Self as #krate::Resource>::INFO.plural;
            type Scope = #krate::k8s_openapi::#scope;
        }
        #[automatically_derived]
        impl #krate::k8s_openapi::Metadata for #ident #bound {
            type Ty = #krate::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
            fn metadata(&self) -> &Self::Ty {
                #metadata
            }
            fn metadata_mut(&mut self) -> &mut Self::Ty {
                #metadata_mut
            }
        }
        #rbac
    }
}

fn text(literal: Option<&LitStr>) -> String {
    literal.map(LitStr::value).unwrap_or_default()
}

fn info(item: &Item<'_>, root: &Root) -> TokenStream {
    let krate = &item.krate;
    let kind = root.kind.as_ref().map_or_else(|| item.ident.to_string(), LitStr::value);
    let lower = kind.to_ascii_lowercase();
    let singular = root.singular.as_ref().map_or_else(|| lower.clone(), LitStr::value);
    let plural = root.plural.as_ref().map_or_else(|| plural(&lower), LitStr::value);
    let list_kind = root.list_kind.as_ref().map_or_else(|| format!("{kind}List"), LitStr::value);
    let (group, version) = (text(root.group.as_ref()), text(root.version.as_ref()));
    let scope = if root.namespaced == Some(false) { quote!(Cluster) } else { quote!(Namespaced) };
    let scales = root.scales.iter().map(|Scale { spec, status, selector, versions, .. }| {
        let selector = selector.as_ref().map_or_else(|| quote!(None), |path| quote!(Some(#path)));
        let versions = versions.expand(krate);
        quote!(#krate::Scale {
            spec_replicas_path: #spec,
            status_replicas_path: #status,
            label_selector_path: #selector,
            versions: #versions,
        })
    });
    let (shown, selectable) = (columns(krate, &root.columns), selectable_fields(krate, &root.selectable));
    let extras = {
        let Extras { short_names, categories, columns: more, selectable } = &root.extras;
        let (more, selectable) = (columns(krate, more), selectable_fields(krate, selectable));
        quote!(#krate::Extras {
            short_names: &[#(#short_names),*],
            categories: &[#(#categories),*],
            columns: &[#(#more),*],
            selectable_fields: &[#(#selectable),*],
        })
    };
    let pairs = |pairs: &[(LitStr, LitStr)]| {
        let pairs = pairs.iter().map(|(key, value)| quote!((#key, #value)));
        quote!(&[#(#pairs),*])
    };
    let (annotations, labels) = (pairs(&root.annotations), pairs(&root.labels));
    let (short_names, categories) = (&root.short_names, &root.categories);
    let status = root.status.as_ref().map_or_else(
        || quote!(None),
        |versions| {
            let versions = versions.expand(krate);
            quote!(Some(#versions))
        },
    );
    let (served, older) = served::expand(krate, root);
    quote!(#krate::ResourceInfo {
        group: #group,
        version: #version,
        kind: #kind,
        list_kind: #list_kind,
        plural: #plural,
        singular: #singular,
        scope: #krate::Scope::#scope,
        short_names: &[#(#short_names),*],
        categories: &[#(#categories),*],
        status: #status,
        scale: &[#(#scales),*],
        columns: &[#(#shown),*],
        selectable_fields: &[#(#selectable),*],
        annotations: #annotations,
        labels: #labels,
        served: #served,
        older: #older,
        extras: #extras,
    })
}

fn columns(krate: &syn::Path, columns: &[Column]) -> Vec<TokenStream> {
    let one = |Column { name, type_, path, description, format, priority, versions }: &Column| {
        let versions = versions.expand(krate);
        quote!(#krate::Column {
            name: #name,
            type_: #type_,
            json_path: #path,
            description: #description,
            format: #format,
            priority: #priority,
            versions: #versions,
        })
    };
    columns.iter().map(one).collect()
}

fn selectable_fields(krate: &syn::Path, fields: &[Selectable]) -> Vec<TokenStream> {
    let one = |Selectable { path, versions }: &Selectable| {
        let versions = versions.expand(krate);
        quote!(#krate::Selectable { json_path: #path, versions: #versions })
    };
    fields.iter().map(one).collect()
}

/// The English plural as kubebuilder forms it.
fn plural(word: &str) -> String {
    let sibilant = ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end));
    let consonant_y = word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match consonant_y {
        Some(stem) => format!("{stem}ies"),
        None if sibilant => format!("{word}es"),
        None => format!("{word}s"),
    }
}

/// Writes apiVersion and kind before the fields.
fn serialize(item: &Item<'_>) -> TokenStream {
    let (ident, krate) = (item.ident, &item.krate);
    let fields = item.fields().iter().filter(|field| !field.serde.flatten).map(|field| {
        let (member, name) = (&field.member, &field.name);
        let write = quote!(#krate::serde::ser::SerializeStruct::serialize_field(&mut object, #name, &self.#member)?;);
        match field.serde.skip_serializing_if.as_ref().and_then(|condition| condition.parse::<syn::Path>().ok()) {
            Some(condition) => quote!(if !#condition(&self.#member) { #write }),
            None => write,
        }
    });
    let count = item.fields().len() + 2;
    quote! {
        #[automatically_derived]
        impl #krate::serde::Serialize for #ident {
            fn serialize<S: #krate::serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                let mut object = #krate::serde::Serializer::serialize_struct(serializer, stringify!(#ident), #count)?;
                #krate::serde::ser::SerializeStruct::serialize_field(
                    &mut object, "apiVersion", <Self as #krate::k8s_openapi::Resource>::API_VERSION)?;
                #krate::serde::ser::SerializeStruct::serialize_field(
                    &mut object, "kind", <Self as #krate::k8s_openapi::Resource>::KIND)?;
                #(#fields)*
                #krate::serde::ser::SerializeStruct::end(object)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plural;

    #[test]
    fn plurals_are_those_of_kubebuilder() {
        for (singular, expected) in [
            ("elasticquota", "elasticquotas"),
            ("nodeslo", "nodeslos"),
            ("noderesourcetopology", "noderesourcetopologies"),
            ("class", "classes"),
            ("gateway", "gateways"),
        ] {
            assert_eq!(plural(singular), expected);
        }
    }
}
