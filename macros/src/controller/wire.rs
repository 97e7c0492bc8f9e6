//! The function `wire`, which asks for everything that a controller works with.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Expr, Field, FnArg, Ident, ItemStruct, Path, Token, Type, parse::Parser, punctuated::Punctuated};

use super::relation::{By, Relation, Role, argument, cached, field, target_and_parts};
use crate::{
    entry::{Entry, Value},
    report::Report,
    words::controller::EFFECTS,
};

/// What stands in the attribute about the fields that are no caches.
pub(super) struct Others {
    effects: Vec<EffectsField>,
    /// Fields that `wire` makes, with their values; none where a field gets the default of its type.
    made: Vec<(Ident, Option<Expr>)>,
    /// Arguments of `wire` that are no fields.
    arguments: Vec<FnArg>,
    /// What `wire` may fail with.
    error: Option<Type>,
}

/// A field that is an `Arc<Effects<…>>`.
struct EffectsField {
    member: Ident,
    limits: Option<Path>,
}

impl EffectsField {
    /// `effects(field)`, `effects(field, limits = PATH)`.
    fn parse(word: &Entry, item: &ItemStruct) -> syn::Result<Self> {
        let (target, parts) = target_and_parts(word, &EFFECTS)?;
        let (member, field) = field(&target, item)?;
        if !has_effects(field) {
            return Err(syn::Error::new_spanned(&field.ty, "effects are an `Arc<Effects<Inputs, Result>>`"));
        }
        let limits = parts.iter().find(|part| part.name() == "limits").map(Entry::path).transpose()?;
        Ok(Self { member: member.clone(), limits })
    }
}

/// Whether the field is an `Arc<Effects<…>>`.
fn has_effects(field: &Field) -> bool {
    argument(&field.ty, "Arc").is_some_and(|type_| argument(type_, "Effects").is_some())
}

impl Others {
    pub(super) fn parse(words: &[Entry], item: &ItemStruct, report: &Report) -> Self {
        let all = |name: &'static str| words.iter().filter(move |word| word.name() == name);
        let effects = all("effects").filter_map(|word| report.keep(EffectsField::parse(word, item))).collect();
        let made = all("init").filter_map(|word| report.keep(made(word, item))).flatten().collect();
        let arguments = all("arguments").filter_map(|word| report.keep(arguments(word))).flatten().collect();
        let error = all("error").find_map(|word| report.keep(word.type_()));
        Self { effects, made, arguments, error }
    }
}

/// `init(field, field = expression)`.
fn made(word: &Entry, item: &ItemStruct) -> syn::Result<Vec<(Ident, Option<Expr>)>> {
    let fields = word.list()?.into_iter().map(|entry| {
        field(&entry.word.clone().into(), item)?;
        let value = match &entry.value {
            Value::Nothing => None,
            Value::Equals(_) => Some(entry.expression()?),
            Value::List(_) => {
                return Err(entry.wrong("`init` takes fields, as in `init(memory, counts = Counts::new()?)`"));
            }
        };
        Ok((entry.word, value))
    });
    fields.collect()
}

/// `arguments(name: Type)`.
fn arguments(word: &Entry) -> syn::Result<Punctuated<FnArg, Token![,]>> {
    let arguments = Punctuated::<FnArg, Token![,]>::parse_terminated.parse2(word.list_tokens()?)?;
    match arguments.iter().find(|argument| matches!(argument, FnArg::Receiver(_))) {
        Some(receiver) => Err(syn::Error::new_spanned(receiver, "`wire` makes the controller: there is no `self` yet")),
        None => Ok(arguments),
    }
}

/// Asks for every cache and says what its changes lead to; fields that nothing else is said about come as arguments.
pub(super) fn wire(
    item: &ItemStruct,
    relations: &[Relation],
    others: &Others,
    for_kind: &TokenStream,
    runtime: &Path,
) -> Option<TokenStream> {
    let relations: Vec<&Relation> = relations.iter().filter(|relation| relation.role != Role::OwnsItself).collect();
    let caches: Option<Vec<(&Ident, &Type)>> = relations.iter().map(|relation| relation.cache()).collect();
    let caches = caches?;
    let Others { effects, made, arguments, error } = others;
    let members = || {
        let caches = caches.iter().map(|(member, _)| *member);
        let effects = effects.iter().map(|effects| &effects.member);
        caches.chain(effects).chain(made.iter().map(|(member, _)| member))
    };
    let is_argument = |field: &&Field| !members().any(|member| field.ident.as_ref() == Some(member));
    let fields: Vec<&Field> = item.fields.iter().filter(is_argument).collect();
    let (names, types): (Vec<_>, Vec<_>) = fields.iter().map(|field| (&field.ident, &field.ty)).unzip();
    let reads = relations.iter().zip(&caches).map(|(relation, cache)| read(relation, *cache, runtime));
    let wanted = effects.iter().map(|EffectsField { member, limits }| {
        let name = member.to_string();
        let limits =
            limits.as_ref().map_or_else(|| quote!(#runtime::effect::EffectLimits::DEFAULT), ToTokens::to_token_stream);
        quote!(let #member = wiring.effects(#name, #limits);)
    });
    let values = made.iter().map(|(member, value)| {
        let value =
            value.as_ref().map_or_else(|| quote!(::core::default::Default::default()), ToTokens::to_token_stream);
        quote!(let #member = #value;)
    });
    let primary = relations.iter().zip(&caches).find(|(relation, _)| relation.role == Role::For)?.1.0;
    let any_method = relations.iter().any(|relation| relation.by.is_method());
    let reactions = relations.iter().zip(&caches).filter(|(relation, _)| relation.role != Role::Reads).map(
        |(relation, (member, _))| {
            let by = relation.by.code(primary, for_kind, runtime);
            let member = if any_method { quote!(controller.#member) } else { quote!(#member) };
            match &relation.predicate {
                None => quote!(wiring.on(&#member, #by);),
                Some(predicate) => quote!(wiring.on(&#member, {
                    let by = #by;
                    move |change, requests| {
                        if #predicate(change) {
                            by(change, requests);
                        }
                    }
                });),
            }
        },
    );
    let all = members();
    let controller = quote!(::std::sync::Arc::new(Self { #(#all,)* #(#names,)* }));
    let wired = if any_method {
        let indexes = relations.iter().any(|relation| matches!(relation.by, By::Index(_)));
        let primary = indexes.then(|| quote!(let #primary = ::std::sync::Arc::clone(&controller.#primary);));
        quote!(let controller = #controller; #primary #(#reactions)* Ok(controller))
    } else {
        quote!(#(#reactions)* Ok(#controller))
    };
    let error = failure(error.as_ref());
    Some(quote! {
        /// Asks for the caches that the controller reads, and says which keys a change in them leads to.
        pub fn wire(
            wiring: &mut #runtime::Wiring<'_>,
            #(#arguments,)*
            #(#names: #types,)*
        ) -> ::core::result::Result<::std::sync::Arc<Self>, #error> {
            #(#reads)*
            #(#wanted)*
            #(#values)*
            #wired
        }
    })
}

/// What `wire` may fail with.
fn failure(error: Option<&Type>) -> TokenStream {
    error.map_or_else(|| quote!(::std::convert::Infallible), ToTokens::to_token_stream)
}

/// The function after a mistake, with the arguments that it has without: the fields that are neither caches nor effects.
pub(super) fn stand_in(item: &ItemStruct, others: &Others, runtime: &Path) -> Option<TokenStream> {
    if item.fields.iter().all(|field| cached(field).is_none()) {
        return None;
    }
    let Others { made, arguments, error, .. } = others;
    let is_made = |field: &Field| made.iter().any(|(member, _)| field.ident.as_ref() == Some(member));
    let is_argument = |field: &&Field| cached(field).is_none() && !has_effects(field) && !is_made(field);
    let (names, types): (Vec<_>, Vec<_>) =
        item.fields.iter().filter(is_argument).map(|field| (&field.ident, &field.ty)).unzip();
    let error = failure(error.as_ref());
    Some(quote! {
        #[doc(hidden)]
        #[allow(unused_variables)]
        pub fn wire(
            _: &mut #runtime::Wiring<'_>,
            #(#arguments,)*
            #(#names: #types,)*
        ) -> ::core::result::Result<::std::sync::Arc<Self>, #error> {
            loop {}
        }
    })
}

/// Asks for the cache of a relation.
fn read(relation: &Relation, (member, projection): (&Ident, &Type), runtime: &Path) -> TokenStream {
    if relation.selection.is_empty() {
        return quote!(let #member = wiring.reads::<#projection>(););
    }
    let parts = relation.selection.iter().map(|(name, text)| quote!(#name: ::std::string::String::from(#text),));
    quote!(let #member = wiring.reads_some::<#projection>(&#runtime::reflector::Selection {
        #(#parts)*
        ..#runtime::reflector::Selection::default()
    });)
}
