//! `#[controller(…)]` on a struct, and `controllers![…]`.

mod relation;
mod wire;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, ItemStruct, Path, Token, parse::Parser, punctuated::Punctuated};

use self::{
    relation::{Relation, Role, cached, is_constant, of_subresource, relations},
    wire::{Others, wire},
};
use crate::{
    entry::{self, Entry},
    names,
    rbac::Permissions,
    report::Report,
    shape::ungrouped_expression,
    words::{
        self,
        controller::{CONTROLLER, RATE_LIMIT, WIRE},
    },
};

/// The struct as it is, with the constant `SPEC` and, where all relations are caches, the function `wire`.
pub(crate) fn attribute(words: TokenStream, item: &ItemStruct) -> TokenStream {
    let report = Report::default();
    let parsed = report.keep(entry::entries(words));
    let words = parsed.as_deref().unwrap_or_default();
    let krate = names::resource(words, &report);
    // Where there are no caches, nothing of the runtime is named.
    let has_caches = item.fields.iter().any(|field| cached(field).is_some());
    let runtime = if has_caches { names::runtime(words, &report) } else { krate.clone() };
    let code = parsed.as_ref().and_then(|words| expand(words, item, (&krate, &runtime), &report));
    let code = report.finish(code.unwrap_or_default(), |_| stand_in(words, item, (&krate, &runtime)));
    quote!(#item #code)
}

/// The constant and the function after a mistake: whatever they say, uses of them compile.
fn stand_in(words: &[Entry], item: &ItemStruct, (krate, runtime): (&Path, &Path)) -> TokenStream {
    let ident = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    let wire = wire::stand_in(item, &Others::parse(words, item, &Report::default()), runtime);
    quote! {
        impl #impl_generics #ident #type_generics #where_clause {
            #[doc(hidden)]
            pub const SPEC: #krate::controller::ControllerSpec = #krate::controller::ControllerSpec {
                name: "",
                for_kind: #krate::controller::ResourceKind::POD,
                owns: &[],
                watches: &[],
                concurrency: 1,
                rate_limit: #krate::controller::RateLimit::DEFAULT,
                gate: None,
                rbac: &[],
            };
            #wire
        }
    }
}

fn expand(
    words: &[Entry],
    item: &ItemStruct,
    (krate, runtime): (&Path, &Path),
    report: &Report,
) -> Option<TokenStream> {
    report.keep(words::only(words, &[&CONTROLLER, &WIRE]));
    let find = |name: &str| words.iter().find(|word| word.name() == name);
    let Some(word) = find("name") else {
        report.on(&item.ident, "a controller needs `name = \"…\"`");
        return None;
    };
    let name = report.keep(word.string())?;
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.value().is_empty() || !name.value().bytes().all(lower) {
        report.at(name.span(), "a controller's name is in lower case, as it stands in `--controllers` and in metrics");
    }
    let relations = relations(words, item, report);
    let mut primary = relations.iter().filter(|relation| relation.role == Role::For);
    let (Some(first), None) = (primary.next(), primary.next()) else {
        if report.is_clean() {
            report.on(&item.ident, "a controller is `for` one kind");
        }
        return None;
    };
    let kinds = |roles: [Role; 2]| {
        let kinds = relations.iter().filter(|relation| roles.contains(&relation.role));
        kinds.map(|relation| relation.kind(krate, runtime)).collect::<Vec<_>>()
    };
    let for_kind = first.kind(krate, runtime);
    let (owns, watches) = (kinds([Role::Owns, Role::OwnsItself]), kinds([Role::Watches, Role::Reads]));
    let concurrency = find("concurrency").and_then(|word| {
        let workers = report.keep(word.unsigned())?;
        if workers == 0 {
            report.on(word, "a controller without workers does nothing");
        }
        usize::try_from(workers).ok()
    });
    let concurrency = concurrency.unwrap_or(1);
    let rate_limit = find("rate_limit").and_then(|word| report.keep(rate_limit(word, krate)));
    let rate_limit = rate_limit.unwrap_or_else(|| quote!(#krate::controller::RateLimit::DEFAULT));
    let gate = find("gate").and_then(|word| report.keep(word.string()));
    let gate = gate.map_or_else(|| quote!(None), |gate| quote!(Some(#gate)));
    let permissions: Vec<Permissions> = words
        .iter()
        .filter(|word| word.name() == "rbac")
        .filter_map(|word| report.keep(Permissions::parse(word)))
        .collect();
    // An owner that waits for its children (`blockOwnerDeletion`) is guarded by this permission where API servers ask for it.
    let owner = relations.iter().any(Relation::has_children);
    let owner = owner.then(|| of_subresource(&for_kind, "finalizers", "update", krate));
    let written = relations.iter().flat_map(|relation| relation.rules(krate, runtime));
    let declared = permissions.iter().flat_map(|permissions| permissions.expand(krate));
    let rules = written.chain(owner).chain(declared);
    let ident = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    let wire = wire(item, &relations, &Others::parse(words, item, report), &for_kind, runtime);
    if wire.is_none()
        && let Some(word) = words.iter().find(|word| WIRE.has(&word.name()))
    {
        report.at(
            word.span(),
            format!(
                "`{}` is about `wire`, which is made where every kind is named by a field that is its cache",
                word.name()
            ),
        );
    }
    Some(quote! {
        #[automatically_derived]
        impl #impl_generics #ident #type_generics #where_clause {
            /// The controller as data.
            pub const SPEC: #krate::controller::ControllerSpec = #krate::controller::ControllerSpec {
                name: #name,
                for_kind: #for_kind,
                owns: &[#(#owns),*],
                watches: &[#(#watches),*],
                concurrency: #concurrency,
                rate_limit: #rate_limit,
                gate: #gate,
                rbac: &[#(#rules),*],
            };
            #wire
        }
    })
}

fn rate_limit(word: &Entry, krate: &Path) -> syn::Result<TokenStream> {
    let parts = word.list()?;
    words::only(&parts, &[&RATE_LIMIT])?;
    let fields = parts
        .iter()
        .map(|part| {
            let (name, value) = (&part.word, part.unsigned()?);
            let value = proc_macro2::Literal::u64_unsuffixed(value);
            Ok(quote!(#name: #value))
        })
        .collect::<syn::Result<Vec<_>>>()?;
    let rest = (fields.len() < RATE_LIMIT.words.len()).then(|| quote!(..#krate::controller::RateLimit::DEFAULT));
    Ok(quote!(#krate::controller::RateLimit { #(#fields,)* #rest }))
}

/// A table of `ControllerSpec`s: structs with `#[controller]` by their name, and whatever else is one.
pub(crate) fn table(tokens: TokenStream) -> TokenStream {
    let list = match Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(list) => list,
        Err(error) => return error.to_compile_error(),
    };
    let elements = list.iter().map(|element| match ungrouped_expression(element) {
        Expr::Path(path) if !is_constant(&path.path) => quote!(#path::SPEC),
        other => quote!(#other),
    });
    quote!(&[#(#elements),*])
}
