//! `#[derive(Resource)]`: the identity of a kind, and how its root is written.

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;

use crate::{
    entry::Entry,
    model::{Body, Item},
    rbac::Permissions,
    report::Report,
    words,
};

/// What `#[koord(…)]` on the root says about the kind.
#[derive(Default)]
pub(crate) struct Root {
    group: Option<LitStr>,
    version: Option<LitStr>,
    kind: Option<LitStr>,
    plural: Option<LitStr>,
    singular: Option<LitStr>,
    list_kind: Option<LitStr>,
    namespaced: Option<bool>,
    status: bool,
    scale: Option<Scale>,
    short_names: Vec<LitStr>,
    categories: Vec<LitStr>,
    columns: Vec<Column>,
    selectable: Vec<LitStr>,
    annotations: Vec<(LitStr, LitStr)>,
    labels: Vec<(LitStr, LitStr)>,
    served: Option<bool>,
    storage: Option<bool>,
    deprecated: Option<String>,
    /// Permissions that come with the kind, for whoever works with it.
    rbac: Vec<Permissions>,
    /// What stands in `hardened(…)`.
    extras: Extras,
}

/// Presentation that only the hardened profile has.
#[derive(Default)]
struct Extras {
    short_names: Vec<LitStr>,
    categories: Vec<LitStr>,
    columns: Vec<Column>,
    selectable: Vec<LitStr>,
}

struct Scale {
    spec: LitStr,
    status: LitStr,
    selector: Option<LitStr>,
}

struct Column {
    name: LitStr,
    type_: LitStr,
    path: LitStr,
    description: String,
    format: String,
    priority: i32,
}

impl Root {
    pub(crate) fn parse(item: &Item<'_>, report: &Report) -> Self {
        let mut root = Root::default();
        for entry in item.entries.iter().filter(|entry| words::ROOT.contains(&entry.name().as_str())) {
            if let Err(error) = root.take(entry) {
                report.add(error);
            }
        }
        for entry in item.entries.iter().filter(|entry| entry.name() == "hardened") {
            // Whatever else stands there are rules, which the markers' reader has seen.
            for inner in entry.list().unwrap_or_default() {
                if let Err(error) = root.extras.take(&inner) {
                    report.add(error);
                }
            }
        }
        root
    }

    fn take(&mut self, entry: &Entry) -> syn::Result<()> {
        match entry.name().as_str() {
            "group" => once(&mut self.group, entry, entry.string())?,
            "version" => once(&mut self.version, entry, version(entry))?,
            "kind" => once(&mut self.kind, entry, entry.string())?,
            "plural" => once(&mut self.plural, entry, lower_case(entry))?,
            "singular" => once(&mut self.singular, entry, lower_case(entry))?,
            "list_kind" => once(&mut self.list_kind, entry, entry.string())?,
            "scope" => once(&mut self.namespaced, entry, scope(entry))?,
            "status" => self.status = entry.flag()?,
            "scale" => once(&mut self.scale, entry, Scale::parse(entry))?,
            "short_name" => self.short_names.extend(entry.strings()?),
            "category" => self.categories.extend(entry.strings()?),
            "column" => self.columns.push(Column::parse(entry)?),
            "selectable" => self.selectable.extend(json_paths(entry)?),
            "annotation" => self.annotations.push(pair(entry)?),
            "label" => self.labels.push(pair(entry)?),
            "served" => once(&mut self.served, entry, entry.flag())?,
            "storage" => once(&mut self.storage, entry, entry.flag())?,
            "deprecated" => {
                let warning =
                    if entry.flag().is_ok() { Ok(String::new()) } else { entry.string().map(|text| text.value()) };
                once(&mut self.deprecated, entry, warning)?;
            }
            "rbac" => self.rbac.push(Permissions::parse(entry)?),
            _ => {}
        }
        Ok(())
    }
}

impl Extras {
    fn take(&mut self, entry: &Entry) -> syn::Result<()> {
        match entry.name().as_str() {
            "short_name" => self.short_names.extend(entry.strings()?),
            "category" => self.categories.extend(entry.strings()?),
            "column" => self.columns.push(Column::parse(entry)?),
            "selectable" => self.selectable.extend(json_paths(entry)?),
            _ => {}
        }
        Ok(())
    }
}

fn json_paths(entry: &Entry) -> syn::Result<Vec<LitStr>> {
    entry.strings()?.into_iter().map(json_path).collect()
}

fn once<T>(slot: &mut Option<T>, entry: &Entry, value: syn::Result<T>) -> syn::Result<()> {
    if slot.is_some() {
        return Err(entry.wrong(&format!("`{}` is given twice", entry.word)));
    }
    *slot = Some(value?);
    Ok(())
}

fn version(entry: &Entry) -> syn::Result<LitStr> {
    let literal = entry.string()?;
    let text = literal.value();
    let digits = text.strip_prefix('v').unwrap_or_default();
    let rest = digits.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let stage = rest.strip_prefix("alpha").or_else(|| rest.strip_prefix("beta"));
    let whole = digits.len() > rest.len()
        && (rest.is_empty() || stage.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())));
    if whole {
        Ok(literal)
    } else {
        Err(syn::Error::new(literal.span(), "a version is like \"v1\", \"v1beta1\" or \"v2alpha3\""))
    }
}

fn lower_case(entry: &Entry) -> syn::Result<LitStr> {
    let literal = entry.string()?;
    let valid = !literal.value().is_empty()
        && literal
            .value()
            .bytes()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-');
    if valid {
        Ok(literal)
    } else {
        Err(syn::Error::new(literal.span(), format!("`{}` is a lower-case name", entry.word)))
    }
}

fn scope(entry: &Entry) -> syn::Result<bool> {
    let literal = entry.string()?;
    match literal.value().as_str() {
        "Namespaced" => Ok(true),
        "Cluster" => Ok(false),
        _ => Err(syn::Error::new(literal.span(), "`scope` is \"Cluster\" or \"Namespaced\"")),
    }
}

fn json_path(literal: LitStr) -> syn::Result<LitStr> {
    let text = literal.value();
    if text.starts_with('.') && text.len() > 1 {
        Ok(literal)
    } else {
        Err(syn::Error::new(literal.span(), "a JSON path starts at the root with a dot, such as \".spec.replicas\""))
    }
}

fn pair(entry: &Entry) -> syn::Result<(LitStr, LitStr)> {
    match <[LitStr; 2]>::try_from(entry.strings()?) {
        Ok([key, value]) => Ok((key, value)),
        Err(_) => Err(entry
            .wrong(&format!("`{}` takes a key and a value, as in `{}(\"key\", \"value\")`", entry.word, entry.word))),
    }
}

impl Scale {
    fn parse(entry: &Entry) -> syn::Result<Self> {
        let parts = entry.list()?;
        words::only(&parts, &["spec", "status", "selector"])?;
        let part = |name: &str| {
            let part = parts.iter().find(|part| part.name() == name);
            part.map(|part| part.string().and_then(json_path)).transpose()
        };
        let missing = |name: &str| entry.wrong(&format!("`scale` needs `{name} = \".path\"`"));
        Ok(Scale {
            spec: part("spec")?.ok_or_else(|| missing("spec"))?,
            status: part("status")?.ok_or_else(|| missing("status"))?,
            selector: part("selector")?,
        })
    }
}

impl Column {
    fn parse(entry: &Entry) -> syn::Result<Self> {
        let parts = entry.list()?;
        words::only(&parts, &["name", "type", "path", "description", "format", "priority"])?;
        let part = |name: &str| parts.iter().find(|part| part.name() == name);
        let text = |name: &str| part(name).map(Entry::string).transpose();
        let needed = |name: &str| text(name)?.ok_or_else(|| entry.wrong(&format!("`column` needs `{name} = \"…\"`")));
        let type_ = needed("type")?;
        let allowed = ["string", "integer", "number", "boolean", "date"];
        if !allowed.contains(&type_.value().as_str()) {
            return Err(syn::Error::new(
                type_.span(),
                "the type of a column is string, integer, number, boolean or date",
            ));
        }
        let priority = part("priority").map(Entry::signed).transpose()?.unwrap_or_default();
        Ok(Column {
            name: needed("name")?,
            type_,
            path: json_path(needed("path")?)?,
            description: text("description")?.map(|text| text.value()).unwrap_or_default(),
            format: text("format")?.map(|text| text.value()).unwrap_or_default(),
            priority: i32::try_from(priority).map_err(|_| entry.wrong("`priority` is too large"))?,
        })
    }
}

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
    for (name, given) in
        [("group", root.group.is_some()), ("version", root.version.is_some()), ("scope", root.namespaced.is_some())]
    {
        if !given {
            report.on(item.ident, format!("a resource needs `#[koord({name} = \"…\")]`"));
        }
    }
    if root.status && !fields.iter().any(|field| field.name == "status") {
        report.on(item.ident, "`status` makes a subresource of the field `status`, which is not there");
    }
    if let Some(scale) = root.scale.as_ref().filter(|_| !root.status) {
        report.on(&scale.status, "`scale` reads the status subresource; add `status`");
    }
}

/// The implementations of `Resource`, of the traits of k8s-openapi, and of `Serialize`.
pub(crate) fn expand(item: &Item<'_>, root: &Root) -> TokenStream {
    let (ident, krate) = (item.ident, &item.krate);
    let info = info(item, root);
    let Some(metadata) = item.fields().iter().find(|field| field.name == "metadata").map(|field| &field.member) else {
        return TokenStream::new();
    };
    let scope =
        if root.namespaced == Some(false) { quote!(ClusterResourceScope) } else { quote!(NamespaceResourceScope) };
    let (group, version) = (text(root.group.as_ref()), text(root.version.as_ref()));
    let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    let serialize = serialize(item);
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
        impl #krate::Resource for #ident {
            const INFO: #krate::ResourceInfo = #info;
            fn metadata(&self) -> &#krate::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.#metadata
            }
            fn metadata_mut(&mut self) -> &mut #krate::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.#metadata
            }
        }
        #[automatically_derived]
        impl #krate::k8s_openapi::Resource for #ident {
            const API_VERSION: &'static str = #api_version;
            const GROUP: &'static str = #group;
            const KIND: &'static str = <Self as #krate::Resource>::INFO.kind;
            const VERSION: &'static str = #version;
            const URL_PATH_SEGMENT: &'static str = <Self as #krate::Resource>::INFO.plural;
            type Scope = #krate::k8s_openapi::#scope;
        }
        #[automatically_derived]
        impl #krate::k8s_openapi::Metadata for #ident {
            type Ty = #krate::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
            fn metadata(&self) -> &Self::Ty {
                &self.#metadata
            }
            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.#metadata
            }
        }
        #rbac
        #serialize
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
    let scale = root.scale.as_ref().map_or_else(
        || quote!(None),
        |Scale { spec, status, selector }| {
            let selector = selector.as_ref().map_or_else(|| quote!(None), |path| quote!(Some(#path)));
            quote!(Some(#krate::Scale {
                spec_replicas_path: #spec,
                status_replicas_path: #status,
                label_selector_path: #selector,
            }))
        },
    );
    let shown = columns(krate, &root.columns);
    let extras = {
        let Extras { short_names, categories, columns: more, selectable } = &root.extras;
        let more = columns(krate, more);
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
    let (short_names, categories, selectable) = (&root.short_names, &root.categories, &root.selectable);
    let (status, served, storage) = (root.status, root.served.unwrap_or(true), root.storage.unwrap_or(true));
    let deprecated = root.deprecated.as_ref().map_or_else(|| quote!(None), |warning| quote!(Some(#warning)));
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
        scale: #scale,
        columns: &[#(#shown),*],
        selectable_fields: &[#(#selectable),*],
        annotations: #annotations,
        labels: #labels,
        served: #krate::Served { served: #served, storage: #storage, deprecated: #deprecated },
        extras: #extras,
    })
}

fn columns(krate: &syn::Path, columns: &[Column]) -> Vec<TokenStream> {
    let one = |Column { name, type_, path, description, format, priority }: &Column| {
        quote!(#krate::Column {
            name: #name,
            type_: #type_,
            json_path: #path,
            description: #description,
            format: #format,
            priority: #priority,
        })
    };
    columns.iter().map(one).collect()
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
