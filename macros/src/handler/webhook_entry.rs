//! What `#[admission(…)]` says about one entry of a webhook configuration.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{LitStr, Path};

use super::{Handler, client::Client};
use crate::{
    cel,
    entry::{Entry, is_domain},
    words::{self, nearest, webhook::MATCH_CONDITION},
};

const OPERATIONS: &[&str] = &["Create", "Update", "Delete", "Connect"];

/// One entry; what it does not say it has from the handler.
#[derive(Clone, Default)]
pub(super) struct WebhookEntry {
    pub(super) name: Option<LitStr>,
    operations: Vec<Ident>,
    groups: Option<Vec<LitStr>>,
    versions: Option<Vec<LitStr>>,
    resources: Option<Vec<LitStr>>,
    subresource: Option<LitStr>,
    failure_policy: Option<Ident>,
    match_policy: Option<LitStr>,
    reinvocation_policy: Option<LitStr>,
    namespace_selector: Vec<Requirement>,
    object_selector: Vec<Requirement>,
    match_conditions: Vec<(LitStr, LitStr)>,
    timeout: Option<i32>,
    review_versions: Vec<LitStr>,
    scope: Option<LitStr>,
    side_effects: Option<Ident>,
    client: Option<Client>,
}

/// One condition of a label selector: `("key", In, ["a"])`.
#[derive(Clone)]
struct Requirement {
    key: LitStr,
    operator: Ident,
    values: Vec<LitStr>,
}

impl WebhookEntry {
    pub(super) fn parse(words: &[Entry], mut entry: WebhookEntry) -> syn::Result<Self> {
        if let Some(client) = Client::find(words)? {
            entry.client = Some(client);
        }
        for word in words {
            match word.name().as_str() {
                "name" => entry.name = Some(qualified(word)?),
                "on" => entry.operations = operations(word)?,
                "groups" => entry.groups = Some(word.strings()?),
                "versions" => entry.versions = Some(word.strings()?),
                "resources" => entry.resources = Some(word.strings()?),
                "subresource" => entry.subresource = Some(word.string()?),
                "failure_policy" => entry.failure_policy = Some(one_of(word, &["Fail", "Ignore"])?),
                "match_policy" => entry.match_policy = Some(text_of(word, &["Exact", "Equivalent"])?),
                "reinvocation_policy" => entry.reinvocation_policy = Some(text_of(word, &["Never", "IfNeeded"])?),
                "namespace_selector" => entry.namespace_selector.push(Requirement::parse(word)?),
                "object_selector" => entry.object_selector.push(Requirement::parse(word)?),
                "match_condition" => entry.match_conditions.push(match_condition(word)?),
                "timeout" => {
                    let seconds = i32::try_from(word.unsigned()?).ok().filter(|seconds| (1..=30).contains(seconds));
                    entry.timeout = Some(seconds.ok_or_else(|| word.wrong("the API server waits 1 to 30 seconds"))?);
                }
                "review_versions" => entry.review_versions = review_versions(word)?,
                "scope" => entry.scope = Some(scope(word)?),
                "side_effects" => entry.side_effects = Some(side_effects(word)?),
                _ => {}
            }
        }
        Ok(entry)
    }

    pub(super) fn check(&self, span: Span, mutating: bool) -> syn::Result<()> {
        if self.name.is_none() {
            return Err(syn::Error::new(span, "every entry needs `name = \"what.example.com\"`"));
        }
        if self.operations.is_empty() {
            return Err(syn::Error::new(span, "a handler needs `on = [Create, Update]`"));
        }
        match &self.reinvocation_policy {
            Some(policy) if !mutating => {
                Err(syn::Error::new(policy.span(), "only mutating webhooks are invoked again"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn expand(
        &self,
        krate: &Path,
        handler: &Handler,
        object: Option<&TokenStream>,
    ) -> syn::Result<TokenStream> {
        let missing = |word: &str| {
            syn::Error::new(handler.span, format!("a handler of a type without `Resource` needs `{word} = [\"…\"]`"))
        };
        let list = |given: &Option<Vec<LitStr>>, word: &str, field: TokenStream| match (given, object) {
            (Some(texts), _) => Ok(quote!(&[#(#texts),*])),
            (None, Some(object)) => Ok(quote!(&[<#object as #krate::Resource>::INFO.#field])),
            (None, None) => Err(missing(word)),
        };
        let groups = list(&self.groups, "groups", quote!(group))?;
        let versions = list(&self.versions, "versions", quote!(version))?;
        let resources = match (&self.subresource, &self.resources) {
            (None, _) => list(&self.resources, "resources", quote!(plural))?,
            (Some(subresource), Some(resources)) => {
                let joined = resources.iter().map(|resource| format!("{}/{}", resource.value(), subresource.value()));
                quote!(&[#(#joined),*])
            }
            (Some(subresource), None) => {
                return Err(syn::Error::new(subresource.span(), "`subresource` needs `resources = [\"…\"]`"));
            }
        };
        let kind = if handler.mutating { quote!(Mutating) } else { quote!(Validating) };
        // What stands behind a gate is new, and must not stand in the way of clusters that never asked for it.
        let policy = self
            .failure_policy
            .clone()
            .unwrap_or_else(|| Ident::new(if handler.gate.is_some() { "Ignore" } else { "Fail" }, Span::call_site()));
        let option =
            |literal: &Option<LitStr>| literal.as_ref().map_or_else(|| quote!(None), |text| quote!(Some(#text)));
        let (match_policy, reinvocation_policy) = (option(&self.match_policy), option(&self.reinvocation_policy));
        let selector = |requirements: &[Requirement]| {
            if requirements.is_empty() {
                return quote!(None);
            }
            let requirements = requirements.iter().map(|Requirement { key, operator, values }| {
                let operator = operator.to_string();
                quote!((#key, #operator, &[#(#values),*]))
            });
            quote!(Some(#krate::admission::Selector { expressions: &[#(#requirements),*] }))
        };
        let (namespace_selector, object_selector) =
            (selector(&self.namespace_selector), selector(&self.object_selector));
        let conditions = self.match_conditions.iter().map(|(name, expression)| quote!((#name, #expression)));
        let timeout = self.timeout.map_or_else(|| quote!(None), |seconds| quote!(Some(#seconds)));
        let review_versions = if self.review_versions.is_empty() {
            quote!(&["v1", "v1beta1"])
        } else {
            let versions = &self.review_versions;
            quote!(&[#(#versions),*])
        };
        let scope = option(&self.scope);
        let side_effects = self.side_effects.clone().unwrap_or_else(|| Ident::new("None", Span::call_site()));
        let client = self
            .client
            .as_ref()
            .map_or_else(|| quote!(#krate::admission::Client::INSTALLED), |client| client.expand(krate));
        let (name, operations) = (&self.name, &self.operations);
        Ok(quote!(#krate::admission::WebhookEntry {
            kind: #krate::admission::WebhookKind::#kind,
            name: #name,
            groups: #groups,
            versions: #versions,
            resources: #resources,
            operations: &[#(#krate::admission::Operation::#operations),*],
            scope: #scope,
            side_effects: #krate::admission::SideEffects::#side_effects,
            client: #client,
            failure_policy: #krate::admission::FailurePolicy::#policy,
            match_policy: #match_policy,
            reinvocation_policy: #reinvocation_policy,
            namespace_selector: #namespace_selector,
            object_selector: #object_selector,
            match_conditions: &[#(#conditions),*],
            timeout_seconds: #timeout,
            review_versions: #review_versions,
        }))
    }
}

impl Requirement {
    fn parse(word: &Entry) -> syn::Result<Self> {
        struct Parts(LitStr, Ident, Vec<LitStr>);
        impl syn::parse::Parse for Parts {
            fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<Self> {
                let key = input.parse()?;
                input.parse::<syn::Token![,]>()?;
                let operator = input.parse()?;
                let mut values = Vec::new();
                if input.parse::<Option<syn::Token![,]>>()?.is_some() && !input.is_empty() {
                    let content;
                    syn::bracketed!(content in input);
                    let list = syn::punctuated::Punctuated::<LitStr, syn::Token![,]>::parse_terminated(&content)?;
                    values = list.into_iter().collect();
                }
                Ok(Parts(key, operator, values))
            }
        }
        let example =
            format!("`{}` takes a key, an operator and values, as in `(\"key\", In, [\"value\"])`", word.word);
        let Parts(key, operator, values) =
            syn::parse2(word.list_tokens()?).map_err(|error| syn::Error::new(error.span(), &example))?;
        let takes_values = match operator.to_string().as_str() {
            "In" | "NotIn" => true,
            "Exists" | "DoesNotExist" => false,
            _ => return Err(syn::Error::new(operator.span(), "the operator is In, NotIn, Exists or DoesNotExist")),
        };
        if takes_values == values.is_empty() {
            let message = if takes_values {
                "`In` and `NotIn` need values"
            } else {
                "`Exists` and `DoesNotExist` take no values"
            };
            return Err(syn::Error::new(operator.span(), message));
        }
        Ok(Requirement { key, operator, values })
    }
}

/// A name of at least three labels, as the API server wants it.
fn qualified(word: &Entry) -> syn::Result<LitStr> {
    let literal = word.string()?;
    let name = literal.value();
    if name.split('.').count() >= 3 && is_domain(&name) {
        Ok(literal)
    } else {
        Err(syn::Error::new(literal.span(), "the name of an entry has three parts or more, as in \"vpod.example.com\""))
    }
}

fn operations(word: &Entry) -> syn::Result<Vec<Ident>> {
    let operations = word.idents()?;
    for operation in &operations {
        let name = operation.to_string();
        if !OPERATIONS.contains(&name.as_str()) {
            let hint = nearest(&name, OPERATIONS).map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
            return Err(syn::Error::new(operation.span(), format!("`{name}` is no operation{hint}")));
        }
    }
    Ok(operations)
}

fn one_of(word: &Entry, allowed: &[&str]) -> syn::Result<Ident> {
    match <[Ident; 1]>::try_from(word.idents()?) {
        Ok([ident]) if allowed.contains(&ident.to_string().as_str()) => Ok(ident),
        _ => Err(word.wrong(&format!("`{}` is {}", word.word, allowed.join(" or ")))),
    }
}

/// `scope = "Namespaced"`.
fn scope(word: &Entry) -> syn::Result<LitStr> {
    let literal = word.string()?;
    if ["Cluster", "Namespaced", "*"].contains(&literal.value().as_str()) {
        Ok(literal)
    } else {
        let message = "`scope` is \"Cluster\", \"Namespaced\" or \"*\" for both, as in `scope = \"Namespaced\"`";
        Err(syn::Error::new(literal.span(), message))
    }
}

/// `side_effects = NoneOnDryRun`.
fn side_effects(word: &Entry) -> syn::Result<Ident> {
    one_of(word, &["None", "NoneOnDryRun"]).map_err(|_| {
        word.wrong(
            "API servers accept no side effects but None and NoneOnDryRun; a handler that has some leaves them out of dry runs and says `side_effects = NoneOnDryRun`",
        )
    })
}

fn text_of(word: &Entry, allowed: &[&str]) -> syn::Result<LitStr> {
    let ident = one_of(word, allowed)?;
    Ok(LitStr::new(&ident.to_string(), ident.span()))
}

fn match_condition(word: &Entry) -> syn::Result<(LitStr, LitStr)> {
    let parts = word.list()?;
    words::only(&parts, &[&MATCH_CONDITION])?;
    let part = |name: &str| {
        let part = parts.iter().find(|part| part.name() == name);
        part.ok_or_else(|| word.wrong(&format!("`match_condition` needs `{name} = \"…\"`")))?.string()
    };
    let expression = part("expression")?;
    let text = expression.value();
    cel::parse(&text).map_err(|mistake| syn::Error::new(expression.span(), mistake.shown(&text)))?;
    Ok((part("name")?, expression))
}

fn review_versions(word: &Entry) -> syn::Result<Vec<LitStr>> {
    let versions = word.strings()?;
    match versions.iter().find(|version| !["v1", "v1beta1"].contains(&version.value().as_str())) {
        Some(unknown) => Err(syn::Error::new(unknown.span(), "reviews come as \"v1\" or \"v1beta1\"")),
        None => Ok(versions),
    }
}
