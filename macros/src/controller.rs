//! `#[controller(…)]` on a struct, and `controllers![…]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Expr, Field, GenericArgument, ItemStruct, LitStr, Path, PathArguments, Token, Type, parse::Parser,
    punctuated::Punctuated,
};

use crate::{
    entry::{self, Entry, Value},
    rbac::Permissions,
    report::Report,
    words::{self, nearest},
};

const WORDS: &[&str] =
    &["crate", "runtime", "name", "for", "owns", "watches", "concurrency", "rate_limit", "gate", "rbac"];
const RELATION: &[&str] = &["mapper", "predicate", "namespace", "labels", "fields"];
const LIMITS: &[&str] = &["base_ms", "max_ms", "per_second", "burst"];

/// What a relation is to the controller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    For,
    Owns,
    Watches,
}

/// A kind that the controller follows.
struct Relation {
    role: Role,
    target: Target,
    mapper: Option<Path>,
    predicate: Option<Path>,
    namespace: Option<LitStr>,
    labels: Option<LitStr>,
    fields: Option<LitStr>,
}

enum Target {
    /// A field that is a cache; its projection knows the kind.
    Cache { member: syn::Ident, projection: Box<Type> },
    /// A type with `Resource`, or a constant `ResourceKind`.
    Kind(Path),
}

/// The struct as it is, with the constant `SPEC` and, where all relations are caches, the function `wire`.
pub(crate) fn attribute(words: TokenStream, item: &ItemStruct) -> TokenStream {
    let report = Report::default();
    let code = expand(words, item, &report).unwrap_or_default();
    let code = if report.is_clean() { code } else { report.into_tokens() };
    quote!(#item #code)
}

fn expand(words: TokenStream, item: &ItemStruct, report: &Report) -> Option<TokenStream> {
    let words = report.keep(entry::entries(words))?;
    report.keep(words::only(&words, WORDS));
    let find = |name: &str| words.iter().find(|word| word.name() == name);
    let path = |name: &str, default: Path| find(name).and_then(|word| report.keep(word.path())).unwrap_or(default);
    let krate = path("crate", syn::parse_quote!(::koord_resource));
    let runtime = path("runtime", syn::parse_quote!(::koord_runtime));
    let Some(word) = find("name") else {
        report.on(&item.ident, "a controller needs `name = \"…\"`");
        return None;
    };
    let name = report.keep(word.string())?;
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.value().is_empty() || !name.value().bytes().all(lower) {
        report.at(name.span(), "a controller's name is in lower case, as it stands in `--controllers` and in metrics");
    }
    let relations = relations(&words, item, report);
    let mut primary = relations.iter().filter(|relation| relation.role == Role::For);
    let (Some(first), None) = (primary.next(), primary.next()) else {
        if report.is_clean() {
            report.on(&item.ident, "a controller is `for` one kind");
        }
        return None;
    };
    let kinds = |role: Role| {
        let kinds = relations.iter().filter(|relation| relation.role == role);
        kinds.map(|relation| relation.kind(&krate, &runtime)).collect::<Vec<_>>()
    };
    let (for_kind, owns, watches) = (first.kind(&krate, &runtime), kinds(Role::Owns), kinds(Role::Watches));
    let concurrency = find("concurrency").and_then(|word| {
        let workers = report.keep(word.unsigned())?;
        if workers == 0 {
            report.on(word, "a controller without workers does nothing");
        }
        usize::try_from(workers).ok()
    });
    let concurrency = concurrency.unwrap_or(1);
    let rate_limit = find("rate_limit").and_then(|word| report.keep(rate_limit(word, &krate)));
    let rate_limit = rate_limit.unwrap_or_else(|| quote!(#krate::controller::RateLimit::DEFAULT));
    let gate = find("gate").and_then(|word| report.keep(word.string()));
    let gate = gate.map_or_else(|| quote!(None), |gate| quote!(Some(#gate)));
    let permissions: Vec<Permissions> = words
        .iter()
        .filter(|word| word.name() == "rbac")
        .filter_map(|word| report.keep(Permissions::parse(word)))
        .collect();
    let rules = permissions.iter().flat_map(|permissions| permissions.expand(&krate));
    let ident = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    let wire = wire(item, &relations, &runtime);
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

fn relations(words: &[Entry], item: &ItemStruct, report: &Report) -> Vec<Relation> {
    let role = |word: &Entry| match word.name().as_str() {
        "for" => Some(Role::For),
        "owns" => Some(Role::Owns),
        "watches" => Some(Role::Watches),
        _ => None,
    };
    let relations = words.iter().filter_map(|word| Some((role(word)?, word)));
    relations.filter_map(|(role, word)| report.keep(Relation::parse(role, word, item))).collect()
}

impl Relation {
    /// `for = target`, `owns(target, mapper = path, …)`.
    fn parse(role: Role, word: &Entry, item: &ItemStruct) -> syn::Result<Self> {
        let (target, parts) = match &word.value {
            Value::Equals(_) => (word.path()?, Vec::new()),
            Value::List(tokens) => {
                let parser = |input: syn::parse::ParseStream<'_>| {
                    let target: Path = input.parse()?;
                    let mut rest = TokenStream::new();
                    if input.parse::<Option<Token![,]>>()?.is_some() {
                        rest = input.parse()?;
                    }
                    Ok((target, rest))
                };
                let (target, rest) = parser.parse2(tokens.clone())?;
                (target, entry::entries(rest)?)
            }
            Value::Nothing => return Err(word.wrong(&format!("`{}` names a field or a kind", word.word))),
        };
        words::only(&parts, RELATION)?;
        let find = |name: &str| parts.iter().find(|part| part.name() == name);
        let text = |name: &str| find(name).map(Entry::string).transpose();
        let path = |name: &str| find(name).map(Entry::path).transpose();
        Ok(Relation {
            role,
            target: Target::of(target, item)?,
            mapper: path("mapper")?,
            predicate: path("predicate")?,
            namespace: text("namespace")?,
            labels: text("labels")?,
            fields: text("fields")?,
        })
    }

    fn kind(&self, krate: &Path, runtime: &Path) -> TokenStream {
        match &self.target {
            Target::Cache { projection, .. } => quote!(<#projection as #runtime::projection::Projection>::KIND),
            Target::Kind(path) if is_constant(path) => quote!(#path),
            Target::Kind(path) => {
                quote!(#krate::controller::ResourceKind::of(&<#path as #krate::Resource>::INFO))
            }
        }
    }
}

impl Target {
    fn of(path: Path, item: &ItemStruct) -> syn::Result<Self> {
        let Some(member) = path.get_ident().filter(|ident| starts_lower(ident)) else {
            return Ok(Target::Kind(path));
        };
        let field = item.fields.iter().find(|field| field.ident.as_ref() == Some(member));
        let Some(field) = field else {
            let names: Vec<String> =
                item.fields.iter().filter_map(|field| field.ident.as_ref()).map(ToString::to_string).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let hint = nearest(&member.to_string(), &names).map(|name| format!("; did you mean `{name}`?"));
            return Err(syn::Error::new(
                member.span(),
                format!("there is no field `{member}`{}", hint.unwrap_or_default()),
            ));
        };
        let projection = projection(field)
            .ok_or_else(|| syn::Error::new_spanned(&field.ty, "a cache is an `Arc<Store<Projection>>`"))?;
        Ok(Target::Cache { member: member.clone(), projection: Box::new(projection.clone()) })
    }
}

fn starts_lower(ident: &syn::Ident) -> bool {
    ident.to_string().starts_with(|letter: char| letter.is_lowercase() || letter == '_')
}

/// `ResourceKind::POD` is a constant, `Reservation` a type.
fn is_constant(path: &Path) -> bool {
    path.segments.last().is_some_and(|last| !last.ident.to_string().contains(|letter: char| letter.is_lowercase()))
}

/// The `P` of `Arc<Store<P>>`.
fn projection(field: &Field) -> Option<&Type> {
    argument(argument(&field.ty, "Arc")?, "Store")
}

fn argument<'t>(type_: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(path) = type_ else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(type_) => Some(type_),
        _ => None,
    }
}

fn rate_limit(word: &Entry, krate: &Path) -> syn::Result<TokenStream> {
    let parts = word.list()?;
    words::only(&parts, LIMITS)?;
    let fields = parts
        .iter()
        .map(|part| {
            let (name, value) = (&part.word, part.unsigned()?);
            let value = proc_macro2::Literal::u64_unsuffixed(value);
            Ok(quote!(#name: #value))
        })
        .collect::<syn::Result<Vec<_>>>()?;
    let rest = (fields.len() < LIMITS.len()).then(|| quote!(..#krate::controller::RateLimit::DEFAULT));
    Ok(quote!(#krate::controller::RateLimit { #(#fields,)* #rest }))
}

/// Asks for every cache and says what its changes lead to; fields that are no caches come as arguments.
fn wire(item: &ItemStruct, relations: &[Relation], runtime: &Path) -> Option<TokenStream> {
    let caches: Option<Vec<(&syn::Ident, &Type, &Relation)>> = relations
        .iter()
        .map(|relation| match &relation.target {
            Target::Cache { member, projection } => Some((member, &**projection, relation)),
            Target::Kind(_) => None,
        })
        .collect();
    let caches = caches?;
    let is_cache = |field: &&Field| caches.iter().any(|(member, ..)| field.ident.as_ref() == Some(member));
    let others: Vec<&Field> = item.fields.iter().filter(|field| !is_cache(field)).collect();
    let (names, types): (Vec<_>, Vec<_>) = others.iter().map(|field| (&field.ident, &field.ty)).unzip();
    let members = caches.iter().map(|(member, ..)| member);
    let reads = caches.iter().map(|(member, projection, relation)| {
        let selection = ["namespace", "labels", "fields"].into_iter().zip([
            &relation.namespace,
            &relation.labels,
            &relation.fields,
        ]);
        let selection: Vec<TokenStream> = selection
            .filter_map(|(name, text)| {
                let name = format_ident!("{name}");
                text.as_ref().map(|text| quote!(#name: #text.to_owned(),))
            })
            .collect();
        if selection.is_empty() {
            quote!(let #member = wiring.reads::<#projection>();)
        } else {
            quote!(let #member = wiring.reads_some::<#projection>(&#runtime::reflector::Selection {
                #(#selection)*
                ..#runtime::reflector::Selection::default()
            });)
        }
    });
    let reactions = caches.iter().map(|(member, _, relation)| {
        let mapper =
            relation.mapper.as_ref().map_or_else(|| quote!(#runtime::controller::same_key), |path| quote!(#path));
        match &relation.predicate {
            None => quote!(wiring.on(&#member, #mapper);),
            Some(predicate) => quote!(wiring.on(&#member, |change, reaction| {
                if #predicate(change) {
                    #mapper(change, reaction);
                }
            });),
        }
    });
    Some(quote! {
        /// Asks for the caches that the controller reads, and says which keys a change in them leads to.
        pub fn wire(
            wiring: &mut #runtime::Wiring<'_>,
            #(#names: #types,)*
        ) -> ::core::result::Result<::std::sync::Arc<Self>, ::std::convert::Infallible> {
            #(#reads)*
            #(#reactions)*
            Ok(::std::sync::Arc::new(Self { #(#members,)* #(#names,)* }))
        }
    })
}

/// A table of `ControllerSpec`s: structs with `#[controller]` by their name, and whatever else is one.
pub(crate) fn table(tokens: TokenStream) -> TokenStream {
    let list = match Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(list) => list,
        Err(error) => return error.to_compile_error(),
    };
    let elements = list.into_iter().map(|element| match element {
        Expr::Path(path) if !is_constant(&path.path) => quote!(#path::SPEC),
        other => quote!(#other),
    });
    quote!(&[#(#elements),*])
}
