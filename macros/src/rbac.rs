//! `rbac(…)`: permissions declared by the code that needs them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{LitStr, Path};

use crate::{
    entry::Entry,
    words::{self, nearest, rbac::RBAC},
};

const VERBS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "use",
    "bind",
    "escalate",
    "impersonate",
    "approve",
    "sign",
    "*",
];

/// The permissions of one `rbac(…)`: one for each resource and URL.
pub(crate) struct Permissions {
    groups: Vec<LitStr>,
    resources: Vec<LitStr>,
    names: Vec<LitStr>,
    urls: Vec<LitStr>,
    verbs: Vec<String>,
    namespace: Option<LitStr>,
    role: Option<LitStr>,
}

impl Permissions {
    pub(crate) fn parse(entry: &Entry) -> syn::Result<Self> {
        let parts = entry.list()?;
        words::only(&parts, &[&RBAC])?;
        let mut permissions = Permissions {
            groups: Vec::new(),
            resources: Vec::new(),
            names: Vec::new(),
            urls: Vec::new(),
            verbs: Vec::new(),
            namespace: None,
            role: None,
        };
        for part in &parts {
            match part.name().as_str() {
                "group" | "groups" => permissions.groups.extend(part.strings()?),
                "resource" | "resources" => permissions.resources.extend(part.strings()?),
                "names" => permissions.names.extend(part.strings()?),
                "urls" => permissions.urls.extend(part.strings()?),
                "namespace" => permissions.namespace = Some(part.string()?),
                "role" => permissions.role = Some(role(part)?),
                _ => permissions.verbs = verbs(part)?,
            }
        }
        if permissions.verbs.is_empty() {
            return Err(entry.wrong("`rbac` needs `verbs = [get, list]`"));
        }
        if permissions.resources.is_empty() == permissions.urls.is_empty() {
            return Err(entry.wrong("`rbac` names either `resources = [\"…\"]` or `urls = [\"/…\"]`"));
        }
        if permissions.groups.is_empty() && !permissions.resources.is_empty() {
            return Err(entry.wrong("`rbac` needs `group = \"…\"`; the group of core kinds is \"\""));
        }
        if let Some(url) = permissions.urls.iter().find(|url| !url.value().starts_with('/')) {
            return Err(syn::Error::new(url.span(), "a URL path starts with a slash"));
        }
        Ok(permissions)
    }

    /// One `RbacRule` for each group and resource, and for each URL.
    pub(crate) fn expand<'p>(&'p self, krate: &'p Path) -> impl Iterator<Item = TokenStream> + 'p {
        let Permissions { groups, resources, names, urls, verbs, namespace, role } = self;
        let option = |text: &Option<LitStr>| text.as_ref().map_or_else(|| quote!(None), |text| quote!(Some(#text)));
        let (namespace, role) = (option(namespace), option(role));
        let rule = move |group: &str, resource: &str, urls: &[&LitStr]| {
            quote!(#krate::rbac::RbacRule {
                group: #group,
                resource: #resource,
                names: &[#(#names),*],
                verbs: &[#(#verbs),*],
                namespace: #namespace,
                role: #role,
                urls: &[#(#urls),*],
            })
        };
        let pairs = groups.iter().flat_map(move |group| resources.iter().map(move |resource| (group, resource)));
        let of_resources = {
            let rule = rule.clone();
            pairs.map(move |(group, resource)| rule(&group.value(), &resource.value(), &[]))
        };
        of_resources.chain(urls.iter().map(move |url| rule("", "", &[url])))
    }
}

/// `role = "database-viewer"`.
fn role(part: &Entry) -> syn::Result<LitStr> {
    let literal = part.string()?;
    let name = literal.value();
    if name.is_empty() || [".", ".."].contains(&name.as_str()) || name.contains(['/', '%']) {
        let message = "a role is a part of URLs, so its name has no `/` and no `%`, as in `role = \"database-viewer\"`";
        return Err(syn::Error::new(literal.span(), message));
    }
    Ok(literal)
}

/// `verbs = [get, list]` or `verbs("get", "list")`.
fn verbs(part: &Entry) -> syn::Result<Vec<String>> {
    let words: Vec<(String, proc_macro2::Span)> = match part.strings() {
        Ok(literals) => literals.iter().map(|literal| (literal.value(), literal.span())).collect(),
        Err(_) => part.idents()?.iter().map(|ident| (ident.to_string(), ident.span())).collect(),
    };
    for (verb, span) in &words {
        if !VERBS.contains(&verb.as_str()) {
            let hint = nearest(verb, VERBS).map(|verb| format!("; did you mean `{verb}`?")).unwrap_or_default();
            return Err(syn::Error::new(*span, format!("`{verb}` is no verb of the API server{hint}")));
        }
    }
    Ok(words.into_iter().map(|(verb, _)| verb).collect())
}
