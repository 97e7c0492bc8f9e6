//! Which kinds a controller follows and writes, and which keys their changes lead to.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Expr, Field, GenericArgument, Ident, ItemStruct, LitInt, LitStr, Path, PathArguments, Token, Type, parse::Parser,
};

use crate::{
    entry::{self, Entry, Value},
    report::Report,
    shape::{ungrouped, ungrouped_expression},
    words::{self, Table, controller::RELATION, nearest},
};

const WRITES: &[&str] = &["create", "patch", "delete", "status", "finalizers"];

/// What a relation is to the controller.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    For,
    Owns,
    /// The objects that the controller is for are made by it too.
    OwnsItself,
    Watches,
    Reads,
}

/// A kind that the controller follows.
pub(super) struct Relation {
    pub(super) role: Role,
    pub(super) target: Target,
    pub(super) by: By,
    pub(super) predicate: Option<Path>,
    /// Which objects the cache holds: fields of a `Selection` and the texts that they get.
    pub(super) selection: Vec<(Ident, Expr)>,
    /// What the controller writes beside what it owns.
    writes: Vec<String>,
    first_part: Option<Ident>,
}

/// Which keys a change in a cache leads to.
pub(super) enum By {
    /// The one of the changed object.
    SameName,
    /// The one of the object that controls the changed one.
    Owner,
    /// The one that a label names, in the namespace of the changed object.
    Label(LitStr),
    /// Those that the index of the controller's own cache finds by the key of the changed object: the whole index, or its part.
    Index(Option<LitInt>),
    /// Those that a function names; a method of the controller (`Self::…`) may read the other caches.
    Function(Path),
}

/// The kind of a relation.
pub(super) enum Target {
    /// A field that is a cache; its projection knows the kind.
    Cache { member: Ident, projection: Box<Type> },
    /// A type with `Resource`, or a constant `ResourceKind`.
    Kind(Path),
}

/// All relations of a controller.
pub(super) fn relations(words: &[Entry], item: &ItemStruct, report: &Report) -> Vec<Relation> {
    let parsed = words.iter().filter_map(|word| report.keep(Relation::parse(word, item))).flatten();
    let mut relations: Vec<Relation> = parsed.collect();
    let primary = relations.iter().find(|relation| relation.role == Role::For).map(|relation| relation.target.text());
    for relation in &mut relations {
        if relation.role == Role::Owns && primary == Some(relation.target.text()) {
            relation.role = Role::OwnsItself;
            if let Some(part) = &relation.first_part {
                report.at(part.span(), "the controller is `for` this; its parts belong there");
            }
        }
    }
    let mut members: Vec<&Ident> = Vec::new();
    for (member, _) in relations.iter().filter(|relation| relation.role != Role::OwnsItself).filter_map(Relation::cache)
    {
        if members.contains(&member) {
            report.at(member.span(), format!("`{member}` is named twice"));
        }
        members.push(member);
    }
    relations
}

impl Relation {
    /// `for = target`, `owns(target, by = …, …)`; none for other words.
    pub(super) fn parse(word: &Entry, item: &ItemStruct) -> syn::Result<Option<Self>> {
        let role = match word.name().as_str() {
            "for" => Role::For,
            "owns" => Role::Owns,
            "watches" => Role::Watches,
            "reads" => Role::Reads,
            _ => return Ok(None),
        };
        let (target, parts) = target_and_parts(word, &RELATION)?;
        if role == Role::Reads
            && let Some(part) = parts.iter().find(|part| matches!(part.name().as_str(), "by" | "predicate"))
        {
            return Err(part.wrong("what is only read triggers nothing; `watches` does"));
        }
        let find = |name: &str| parts.iter().find(|part| part.name() == name);
        let selects = |part: &&Entry| matches!(part.name().as_str(), "namespace" | "labels" | "fields");
        let selection = parts.iter().filter(selects).map(|part| Ok((part.word.clone(), part.expression()?)));
        let default = if role == Role::Owns { By::Owner } else { By::SameName };
        Ok(Some(Relation {
            role,
            target: Target::of(target, item)?,
            by: find("by").map(By::parse).transpose()?.unwrap_or(default),
            predicate: find("predicate").map(Entry::path).transpose()?,
            selection: selection.collect::<syn::Result<_>>()?,
            writes: find("writes").map(writes).transpose()?.unwrap_or_default(),
            first_part: parts.first().map(|part| part.word.clone()),
        }))
    }

    /// The field that is the cache.
    pub(super) fn cache(&self) -> Option<(&Ident, &Type)> {
        match &self.target {
            Target::Cache { member, projection } => Some((member, projection)),
            Target::Kind(_) => None,
        }
    }

    /// Whether objects of the kind are children of those that the controller is for.
    pub(super) fn has_children(&self) -> bool {
        self.role == Role::Owns && matches!(self.by, By::Owner)
    }

    pub(super) fn kind(&self, krate: &Path, runtime: &Path) -> TokenStream {
        match &self.target {
            Target::Cache { projection, .. } => quote!(<#projection as #runtime::projection::Projection>::KIND),
            Target::Kind(path) if is_constant(path) => quote!(#path),
            Target::Kind(path) => {
                quote!(#krate::controller::ResourceKind::of(&<#path as #krate::Resource>::INFO))
            }
        }
    }

    /// The permissions that follow from `writes`.
    pub(super) fn rules(&self, krate: &Path, runtime: &Path) -> Vec<TokenStream> {
        let kind = self.kind(krate, runtime);
        let mut verbs: Vec<&str> = Vec::new();
        for write in self.writes.iter().filter(|write| *write != "status") {
            let verb = if write == "finalizers" { "patch" } else { write };
            if !verbs.contains(&verb) {
                verbs.push(verb);
            }
        }
        let of_object = (!verbs.is_empty()).then(|| quote!(#kind.rule(&[#(#verbs),*])));
        let of_status = self.writes.iter().any(|write| write == "status");
        let of_status = of_status.then(|| of_subresource(&kind, "status", "patch", krate));
        of_object.into_iter().chain(of_status).collect()
    }
}

/// Permission for a subresource of a kind.
pub(super) fn of_subresource(kind: &TokenStream, name: &str, verb: &str, krate: &Path) -> TokenStream {
    quote!(#krate::rbac::RbacRule {
        resource: const { &#krate::rbac::Subresource::new(#kind.plural, #name) }.as_str(),
        ..#kind.rule(&[#verb])
    })
}

/// `writes = [status, finalizers]`.
fn writes(entry: &Entry) -> syn::Result<Vec<String>> {
    let words = entry.idents()?;
    match words.iter().find(|word| !WRITES.contains(&word.to_string().as_str())) {
        Some(word) => Err(syn::Error::new(word.span(), words::unknown(&word.to_string(), WRITES))),
        None => Ok(words.iter().map(ToString::to_string).collect()),
    }
}

impl By {
    /// `same_name`, `owner`, `label("…")`, `index`, `index(1)`, or the path of a function.
    pub(super) fn parse(entry: &Entry) -> syn::Result<Self> {
        const WHAT: &str = "`by` is `same_name`, `owner`, `label(\"…\")`, `index`, or a function of a change and the requests that follow from it";
        let Value::Equals(tokens) = &entry.value else { return Err(entry.wrong(WHAT)) };
        let expression: Expr = syn::parse2(tokens.clone())?;
        let wrong = || syn::Error::new_spanned(&expression, WHAT);
        match ungrouped_expression(&expression) {
            Expr::Path(path) if path.path.is_ident("same_name") => Ok(Self::SameName),
            Expr::Path(path) if path.path.is_ident("owner") => Ok(Self::Owner),
            Expr::Path(path) if path.path.is_ident("index") => Ok(Self::Index(None)),
            Expr::Path(path) if path.path.is_ident("label") => Err(wrong()),
            Expr::Path(path) => Ok(Self::Function(path.path.clone())),
            Expr::Call(call) => {
                let Expr::Path(function) = &*call.func else { return Err(wrong()) };
                let argument = call.args.first().filter(|_| call.args.len() == 1);
                match argument.map(ungrouped_expression) {
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
    pub(super) fn is_method(&self) -> bool {
        matches!(self, Self::Function(path) if path.segments.len() == 2 && path.segments[0].ident == "Self")
    }

    /// A function of a change and the requests.
    pub(super) fn code(&self, primary: &Ident, for_kind: &TokenStream, runtime: &Path) -> TokenStream {
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
    /// As it stands in the attribute.
    fn text(&self) -> String {
        match self {
            Target::Cache { member, .. } => member.to_string(),
            Target::Kind(path) => quote!(#path).to_string(),
        }
    }

    fn of(path: Path, item: &ItemStruct) -> syn::Result<Self> {
        if path.get_ident().is_none_or(|ident| !starts_lower(ident)) {
            return Ok(Target::Kind(path));
        }
        let (member, field) = field(&path, item)?;
        let projection = cached(field)
            .ok_or_else(|| syn::Error::new_spanned(&field.ty, "a cache is an `Arc<Store<Projection>>`"))?;
        Ok(Target::Cache { member: member.clone(), projection: Box::new(projection.clone()) })
    }
}

/// `word = target`, or `word(target, part = …)` with the parts that are known.
pub(super) fn target_and_parts(word: &Entry, known: &Table) -> syn::Result<(Path, Vec<Entry>)> {
    let name = word.name();
    let example = if name == "effects" {
        "`effects` names a field, as in `effects(buckets)`".to_owned()
    } else {
        format!("`{name}` names a field or a kind, as in `{name}(pods)` or `{name}(ResourceKind::POD)`")
    };
    match &word.value {
        Value::Nothing => Err(word.wrong(&example)),
        Value::Equals(tokens) => {
            let target = syn::parse2(tokens.clone()).map_err(|error| syn::Error::new(error.span(), example))?;
            Ok((target, Vec::new()))
        }
        Value::List(tokens) => {
            if let Some(error) = several(&name, tokens, known) {
                return Err(error);
            }
            let parser = |input: syn::parse::ParseStream<'_>| {
                let target: Path = input.parse().map_err(|error| syn::Error::new(error.span(), &example))?;
                let mut rest = TokenStream::new();
                if input.parse::<Option<Token![,]>>()?.is_some() {
                    rest = input.parse()?;
                }
                Ok((target, rest))
            };
            let (target, rest) = parser.parse2(tokens.clone())?;
            let parts = entry::entries(rest)?;
            words::only(&parts, &[known])?;
            Ok((target, parts))
        }
    }
}

/// `a, b` of `a, b, part = value`.
fn leading_paths(input: syn::parse::ParseStream<'_>) -> syn::Result<Vec<Path>> {
    let mut paths = Vec::new();
    while !input.is_empty() {
        let path: Path = input.parse()?;
        if !input.is_empty() && !input.peek(Token![,]) {
            break;
        }
        paths.push(path);
        input.parse::<Option<Token![,]>>()?;
    }
    input.parse::<TokenStream>()?;
    Ok(paths)
}

/// What is wrong with `owns(a, b)`.
fn several(name: &str, tokens: &TokenStream, known: &Table) -> Option<syn::Error> {
    let targets = leading_paths.parse2(tokens.clone()).ok()?;
    let second = targets.get(1)?;
    if second.get_ident().is_some_and(|ident| known.has(&ident.to_string())) {
        return None;
    }
    let text = |target: &Path| quote!(#target).to_string().replace(' ', "");
    let message = if name == "for" {
        let (first, second) = (text(&targets[0]), text(second));
        format!(
            "a controller is `for` one kind; write `for = {first}`, and `owns({second})`, `watches({second})` or `reads({second})`"
        )
    } else {
        let each: Vec<String> = targets.iter().map(|target| format!("{name}({})", text(target))).collect();
        format!("`{name}` takes one field or kind; write `{}`", each.join(", "))
    };
    Some(syn::Error::new_spanned(second, message))
}

/// The field that a word names.
pub(super) fn field<'i>(path: &'i Path, item: &'i ItemStruct) -> syn::Result<(&'i Ident, &'i Field)> {
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

fn starts_lower(ident: &Ident) -> bool {
    ident.to_string().starts_with(|letter: char| letter.is_lowercase() || letter == '_')
}

/// `ResourceKind::POD` is a constant, `Reservation` a type.
pub(super) fn is_constant(path: &Path) -> bool {
    path.segments.last().is_some_and(|last| !last.ident.to_string().contains(|letter: char| letter.is_lowercase()))
}

/// The `P` of a field that is an `Arc<Store<P>>`.
pub(super) fn cached(field: &Field) -> Option<&Type> {
    argument(argument(&field.ty, "Arc")?, "Store")
}

pub(super) fn argument<'t>(type_: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(path) = ungrouped(type_) else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(type_) => Some(type_),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::{Delimiter, Group};

    use super::*;

    #[test]
    fn a_label_may_come_out_of_a_macro() {
        let label = Group::new(Delimiter::None, quote!("example.com/pod"));
        let by = entry::entries(quote!(by = label(#label))).unwrap();
        assert!(matches!(By::parse(&by[0]), Ok(By::Label(label)) if label.value() == "example.com/pod"));
    }
}
