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
    &["crate", "runtime", "name", "for", "owns", "watches", "effects", "concurrency", "rate_limit", "gate", "rbac"];
const RELATION: &[&str] = &["by", "predicate", "namespace", "labels", "fields"];
const LIMITS: &[&str] = &["base_ms", "max_ms", "per_second", "burst"];

/// A field that is an `Arc<Effects<…>>`.
struct EffectsField {
    member: syn::Ident,
    limits: Option<Path>,
}

impl EffectsField {
    /// `effects(field)`, `effects(field, limits = PATH)`.
    fn parse(word: &Entry, item: &ItemStruct) -> syn::Result<Self> {
        let (target, parts) = target_and_parts(word)?;
        words::only(&parts, &["limits"])?;
        let (member, field) = field(&target, item)?;
        if argument(&field.ty, "Arc").and_then(|type_| argument(type_, "Effects")).is_none() {
            return Err(syn::Error::new_spanned(&field.ty, "effects are an `Arc<Effects<Inputs, Result>>`"));
        }
        let limits = parts.iter().find(|part| part.name() == "limits").map(Entry::path).transpose()?;
        Ok(Self { member: member.clone(), limits })
    }
}

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
    by: By,
    predicate: Option<Path>,
    namespace: Option<LitStr>,
    labels: Option<LitStr>,
    fields: Option<LitStr>,
}

/// Which keys a change in a cache leads to.
enum By {
    /// The one of the changed object.
    SameName,
    /// The one of the object that controls the changed one.
    Owner,
    /// The one that a label names, in the namespace of the changed object.
    Label(LitStr),
    /// Those that the index of the controller's own cache finds by the key of the changed object: the whole index, or its part.
    Index(Option<syn::LitInt>),
    /// Those that a function names; a method of the controller (`Self::…`) may read the other caches.
    Function(Path),
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
    let effects: Vec<EffectsField> = words
        .iter()
        .filter(|word| word.name() == "effects")
        .filter_map(|word| report.keep(EffectsField::parse(word, item)))
        .collect();
    let wire = wire(item, &relations, &effects, &for_kind, &runtime);
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
    /// `for = target`, `owns(target, by = …, …)`.
    fn parse(role: Role, word: &Entry, item: &ItemStruct) -> syn::Result<Self> {
        let (target, parts) = target_and_parts(word)?;
        words::only(&parts, RELATION)?;
        let find = |name: &str| parts.iter().find(|part| part.name() == name);
        let text = |name: &str| find(name).map(Entry::string).transpose();
        let path = |name: &str| find(name).map(Entry::path).transpose();
        let default = if role == Role::Owns { By::Owner } else { By::SameName };
        Ok(Relation {
            role,
            target: Target::of(target, item)?,
            by: find("by").map(By::parse).transpose()?.unwrap_or(default),
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

impl By {
    /// `same_name`, `owner`, `label("…")`, `index`, `index(1)`, or the path of a function.
    fn parse(entry: &Entry) -> syn::Result<Self> {
        const WHAT: &str = "`by` is `same_name`, `owner`, `label(\"…\")`, `index`, or a function of a change and the requests that follow from it";
        let Value::Equals(tokens) = &entry.value else { return Err(entry.wrong(WHAT)) };
        let expression: Expr = syn::parse2(tokens.clone())?;
        let wrong = || syn::Error::new_spanned(&expression, WHAT);
        match &expression {
            Expr::Path(path) if path.path.is_ident("same_name") => Ok(Self::SameName),
            Expr::Path(path) if path.path.is_ident("owner") => Ok(Self::Owner),
            Expr::Path(path) if path.path.is_ident("index") => Ok(Self::Index(None)),
            Expr::Path(path) if path.path.is_ident("label") => Err(wrong()),
            Expr::Path(path) => Ok(Self::Function(path.path.clone())),
            Expr::Call(call) => {
                let Expr::Path(function) = &*call.func else { return Err(wrong()) };
                let argument = call.args.first().filter(|_| call.args.len() == 1);
                match argument {
                    Some(Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(label), .. }))
                        if function.path.is_ident("label") =>
                    {
                        Ok(Self::Label(label.clone()))
                    }
                    Some(Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(part), .. }))
                        if function.path.is_ident("index") =>
                    {
                        Ok(Self::Index(Some(part.clone())))
                    }
                    _ => Err(wrong()),
                }
            }
            _ => Err(wrong()),
        }
    }

    /// Whether it is a method of the controller, which must exist before it is asked.
    fn is_method(&self) -> bool {
        matches!(self, Self::Function(path) if path.segments.len() == 2 && path.segments[0].ident == "Self")
    }

    /// A function of a change and the requests.
    fn code(&self, primary: &syn::Ident, for_kind: &TokenStream, runtime: &Path) -> TokenStream {
        match self {
            Self::SameName => quote!(#runtime::controller::same_key),
            Self::Owner => quote!(#runtime::controller::its_owner(#for_kind)),
            Self::Label(label) => quote!(#runtime::controller::named_by_label(#for_kind, #label)),
            Self::Index(part) => {
                let part = part.as_ref().map(|part| quote!(.#part));
                quote!({
                    let indexed = ::std::sync::Arc::clone(&#primary);
                    move |change: &#runtime::cache::Change<_>, requests: &mut #runtime::controller::Requests| {
                        indexed.read().index() #part .get(&change.key).for_each(|key| requests.enqueue(key));
                    }
                })
            }
            Self::Function(path) if self.is_method() => quote!({
                // The caches outlive the controller, which they must not keep alive.
                let controller = ::std::sync::Arc::downgrade(&controller);
                move |change: &#runtime::cache::Change<_>, requests: &mut #runtime::controller::Requests| {
                    if let Some(controller) = controller.upgrade() {
                        #path(&controller, change, requests);
                    }
                }
            }),
            Self::Function(path) => quote!(#path),
        }
    }
}

impl Target {
    fn of(path: Path, item: &ItemStruct) -> syn::Result<Self> {
        if path.get_ident().is_none_or(|ident| !starts_lower(ident)) {
            return Ok(Target::Kind(path));
        }
        let (member, field) = field(&path, item)?;
        let projection = projection(field)
            .ok_or_else(|| syn::Error::new_spanned(&field.ty, "a cache is an `Arc<Store<Projection>>`"))?;
        Ok(Target::Cache { member: member.clone(), projection: Box::new(projection.clone()) })
    }
}

/// `word = target`, or `word(target, part = …)`.
fn target_and_parts(word: &Entry) -> syn::Result<(Path, Vec<Entry>)> {
    Ok(match &word.value {
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
    })
}

/// The field that a word names.
fn field<'i>(path: &'i Path, item: &'i ItemStruct) -> syn::Result<(&'i syn::Ident, &'i Field)> {
    let Some(member) = path.get_ident() else {
        return Err(syn::Error::new_spanned(path, "expected the name of a field"));
    };
    let field = item.fields.iter().find(|field| field.ident.as_ref() == Some(member)).ok_or_else(|| {
        let names: Vec<String> =
            item.fields.iter().filter_map(|field| field.ident.as_ref()).map(ToString::to_string).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let hint = nearest(&member.to_string(), &names).map(|name| format!("; did you mean `{name}`?"));
        syn::Error::new(member.span(), format!("there is no field `{member}`{}", hint.unwrap_or_default()))
    })?;
    Ok((member, field))
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
fn wire(
    item: &ItemStruct,
    relations: &[Relation],
    effects: &[EffectsField],
    for_kind: &TokenStream,
    runtime: &Path,
) -> Option<TokenStream> {
    let caches: Option<Vec<(&syn::Ident, &Type, &Relation)>> = relations
        .iter()
        .map(|relation| match &relation.target {
            Target::Cache { member, projection } => Some((member, &**projection, relation)),
            Target::Kind(_) => None,
        })
        .collect();
    let caches = caches?;
    let is_ours = |field: &&Field| {
        let caches = caches.iter().map(|(member, ..)| *member);
        caches.chain(effects.iter().map(|effects| &effects.member)).any(|member| field.ident.as_ref() == Some(member))
    };
    let others: Vec<&Field> = item.fields.iter().filter(|field| !is_ours(field)).collect();
    let (names, types): (Vec<_>, Vec<_>) = others.iter().map(|field| (&field.ident, &field.ty)).unzip();
    let members = caches.iter().map(|(member, ..)| *member).chain(effects.iter().map(|effects| &effects.member));
    let wanted = effects.iter().map(|EffectsField { member, limits }| {
        let name = member.to_string();
        let limits =
            limits.as_ref().map_or_else(|| quote!(#runtime::effect::EffectLimits::DEFAULT), |path| quote!(#path));
        quote!(let #member = wiring.effects(#name, #limits);)
    });
    let any_method = caches.iter().any(|(_, _, relation)| relation.by.is_method());
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
    let primary = caches.iter().find_map(|(member, _, relation)| (relation.role == Role::For).then_some(*member))?;
    let reactions = caches.iter().map(|(member, _, relation)| {
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
    });
    let made = quote!(::std::sync::Arc::new(Self { #(#members,)* #(#names,)* }));
    let wired = if any_method {
        let indexes = caches.iter().any(|(_, _, relation)| matches!(relation.by, By::Index(_)));
        let primary = indexes.then(|| quote!(let #primary = ::std::sync::Arc::clone(&controller.#primary);));
        quote!(let controller = #made; #primary #(#reactions)* Ok(controller))
    } else {
        quote!(#(#reactions)* Ok(#made))
    };
    Some(quote! {
        /// Asks for the caches that the controller reads, and says which keys a change in them leads to.
        pub fn wire(
            wiring: &mut #runtime::Wiring<'_>,
            #(#names: #types,)*
        ) -> ::core::result::Result<::std::sync::Arc<Self>, ::std::convert::Infallible> {
            #(#reads)*
            #(#wanted)*
            #wired
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
