//! What `#[admission(…)]` on a function and `admission(validate(…), mutate(…))` on a type say about a handler.

mod client;
mod webhook_entry;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{LitStr, Path};
use webhook_entry::WebhookEntry;

use crate::{
    entry::Entry,
    rbac::Permissions,
    words::{
        self,
        webhook::{DECLARED, ENTRY, FUNCTION},
    },
};

/// A handler as its attribute declares it.
pub(crate) struct Handler {
    span: Span,
    pub(crate) path: LitStr,
    pub(crate) mutating: bool,
    gate: Option<LitStr>,
    object_type: Option<LitStr>,
    rbac: Vec<Permissions>,
    /// The code of a denial by the type's own rules.
    code: u16,
    /// The field manager whose requests are never denied.
    warns: Option<LitStr>,
    /// Whether a function decides that is attached where a snapshot is known.
    pub(crate) snapshot: bool,
    entries: Vec<WebhookEntry>,
}

impl Handler {
    /// Reads the words; `mutating` is known where they stand in `mutate(…)` or `validate(…)`.
    pub(crate) fn parse(words: &[Entry], span: Span, mutating: Option<bool>) -> syn::Result<Self> {
        let own = if mutating.is_some() { &DECLARED } else { &FUNCTION };
        words::only(words, &[own, &ENTRY])?;
        let find = |name: &str| words.iter().find(|word| word.name() == name);
        let path = find("path").ok_or_else(|| syn::Error::new(span, "a handler needs `path = \"/…\"`"))?.string()?;
        if !path.value().starts_with('/') {
            return Err(syn::Error::new(path.span(), "a path starts with a slash"));
        }
        let flag = |name: &str| find(name).map(Entry::flag).transpose().map(Option::unwrap_or_default);
        let mutating = match (mutating, flag("mutating")?, flag("validating")?) {
            (Some(known), _, _) => known,
            (None, true, false) => true,
            (None, false, true) => false,
            (None, false, false) if path.value().starts_with("/mutate") => true,
            (None, false, false) if path.value().starts_with("/validate") => false,
            _ => return Err(syn::Error::new(span, "a handler is either `mutating` or `validating`")),
        };
        if let Some(word) = find("code").or_else(|| find("warns")).filter(|_| mutating) {
            return Err(word.wrong(&format!(
                "`{}` is about denials, and a mutating handler gives defaults; put it into `validate(…)`",
                word.word
            )));
        }
        let snapshot = flag("snapshot")?;
        let code = find("code").map(Entry::unsigned).transpose()?.unwrap_or(422);
        let code = u16::try_from(code)
            .ok()
            .filter(|code| (400..600).contains(code))
            .ok_or_else(|| syn::Error::new(span, "the code of a refusal is 400 to 599"))?;
        let common = WebhookEntry::parse(words, WebhookEntry::default())?;
        let own: Vec<&Entry> = words.iter().filter(|word| word.name() == "entry").collect();
        let entries = own
            .iter()
            .map(|entry| {
                let words = entry.list()?;
                words::only(&words, &[&ENTRY])?;
                WebhookEntry::parse(&words, common.clone())
            })
            .collect::<syn::Result<Vec<_>>>()?;
        let entries = if entries.is_empty() { vec![common] } else { entries };
        for (index, entry) in entries.iter().enumerate() {
            entry.check(span, mutating)?;
            let repeated = |earlier: &WebhookEntry| {
                earlier.name.as_ref().map(LitStr::value) == entry.name.as_ref().map(LitStr::value)
            };
            if entries[..index].iter().any(repeated) {
                return Err(syn::Error::new(span, "two entries have one name"));
            }
        }
        Ok(Handler {
            span,
            mutating,
            gate: find("gate").map(Entry::string).transpose()?,
            object_type: find("object_type").map(Entry::string).transpose()?,
            rbac: words
                .iter()
                .filter(|word| word.name() == "rbac")
                .map(Permissions::parse)
                .collect::<syn::Result<Vec<_>>>()?,
            path,
            code,
            warns: find("warns").map(Entry::string).transpose()?,
            snapshot,
            entries,
        })
    }

    /// The constant `Handler` of a function; `object` is the declared type that it reviews, where there is one.
    pub(crate) fn expand(
        &self,
        krate: &Path,
        object: Option<&TokenStream>,
        call: &TokenStream,
    ) -> syn::Result<TokenStream> {
        let members = self.members(krate, object)?;
        Ok(quote!(#krate::admission::Handler { #members call: #call, }))
    }

    /// The constant `Declaration` of a type.
    pub(crate) fn declaration(&self, krate: &Path, object: &TokenStream) -> syn::Result<TokenStream> {
        let (members, code) = (self.members(krate, Some(object))?, self.code);
        let warns = self.warns.as_ref().map_or_else(|| quote!(None), |manager| quote!(Some(#manager)));
        Ok(quote!(#krate::admission::Declaration { #members code: #code, warns: #warns, }))
    }

    fn members(&self, krate: &Path, object: Option<&TokenStream>) -> syn::Result<TokenStream> {
        let Handler { path, gate, .. } = self;
        let gate = gate.as_ref().map_or_else(|| quote!(None), |gate| quote!(Some(#gate)));
        let rules = self.rbac.iter().flat_map(|permissions| permissions.expand(krate));
        let entries =
            self.entries.iter().map(|entry| entry.expand(krate, self, object)).collect::<syn::Result<Vec<_>>>()?;
        let object_type = match (&self.object_type, object) {
            (Some(literal), _) => quote!(#literal),
            (None, Some(object)) => quote!(<#object as #krate::Resource>::INFO.singular),
            (None, None) => {
                return Err(syn::Error::new(
                    self.span,
                    "a handler of a type without `Resource` needs `object_type = \"…\"`",
                ));
            }
        };
        Ok(quote! {
            path: #path,
            gate: #gate,
            entries: &[#(#entries),*],
            rbac: &[#(#rules),*],
            object_type: #object_type,
        })
    }
}
